# What is drawn once for each seed and is the same for every method. Inputs are `ancient`: a path names everything that decides
# its content, so a file's time never draws anything again. Outputs are `update`: a new seed is drawn beside the others.
# Seeds that only a table of its own asks for are drawn one by one: drawing takes a while, and the other tables need none of them.
OTHER_SEED = rf"(?!(?:{'|'.join(map(str, FLOW.drawn_seeds))})\.)\d+"

rule partitions:
    input: FLOW.drawn()
    message: "all that is drawn is there"

rule partition:
    input: ancient(lambda w: FLOW.native_manifest("partition", w.artifact))
    output: update(expand("data/partitions/{{artifact}}/seed{seed}{ending}", seed=FLOW.drawn_seeds, ending=[".npz", ".json", ".svg"]))
    params: arguments=lambda w: FLOW.arguments("partition", w.artifact)
    log: "logs/partition/{artifact}.log"
    benchmark: "logs/partition/{artifact}.tsv"
    message: "partition {wildcards.artifact}"
    shell: "fedrepro partition {params.arguments} --seeds {FLOW.drawn_seeds} > {log} 2>&1"

rule participation:
    output: update(expand("data/participation/{{artifact}}/seed{seed}{ending}", seed=FLOW.drawn_seeds, ending=[".npz", ".json"]))
    params: arguments=lambda w: FLOW.arguments("participation", w.artifact)
    log: "logs/participation/{artifact}.log"
    benchmark: "logs/participation/{artifact}.tsv"
    message: "cohorts {wildcards.artifact}"
    shell: "fedrepro participation {params.arguments} --seeds {FLOW.drawn_seeds} > {log} 2>&1"

rule proxy:
    input: ancient(lambda w: FLOW.native_manifest("proxy", w.artifact))
    output: update(expand("data/proxy/{{artifact}}/seed{seed}{ending}", seed=FLOW.drawn_seeds, ending=[".npz", ".json"]))
    params: arguments=lambda w: FLOW.arguments("proxy", w.artifact)
    log: "logs/proxy/{artifact}.log"
    benchmark: "logs/proxy/{artifact}.tsv"
    message: "proxy set {wildcards.artifact}"
    shell: "fedrepro proxy {params.arguments} --seeds {FLOW.drawn_seeds} > {log} 2>&1"

rule init:
    output: update(expand("data/init/{{artifact}}/seed{seed}{ending}", seed=FLOW.drawn_seeds, ending=[".safetensors", ".json"]))
    params: arguments=lambda w: FLOW.arguments("init", w.artifact)
    log: "logs/init/{artifact}.log"
    message: "initial model {wildcards.artifact}"
    shell: "fedrepro init {params.arguments} --seeds {FLOW.drawn_seeds} > {log} 2>&1"

rule partition_seed:
    input: ancient(lambda w: FLOW.native_manifest("partition", w.artifact))
    output: expand("data/partitions/{{artifact}}/seed{{seed}}{ending}", ending=[".npz", ".json", ".svg"])
    wildcard_constraints: seed=OTHER_SEED
    params: arguments=lambda w: FLOW.arguments("partition", w.artifact)
    log: "logs/partition/{artifact}-{seed}.log"
    message: "partition {wildcards.artifact}, seed {wildcards.seed}"
    shell: "fedrepro partition {params.arguments} --seeds {wildcards.seed} > {log} 2>&1"

rule participation_seed:
    output: expand("data/participation/{{artifact}}/seed{{seed}}{ending}", ending=[".npz", ".json"])
    wildcard_constraints: seed=OTHER_SEED
    params: arguments=lambda w: FLOW.arguments("participation", w.artifact)
    log: "logs/participation/{artifact}-{seed}.log"
    message: "cohorts {wildcards.artifact}, seed {wildcards.seed}"
    shell: "fedrepro participation {params.arguments} --seeds {wildcards.seed} > {log} 2>&1"

rule proxy_seed:
    input: ancient(lambda w: FLOW.native_manifest("proxy", w.artifact))
    output: expand("data/proxy/{{artifact}}/seed{{seed}}{ending}", ending=[".npz", ".json"])
    wildcard_constraints: seed=OTHER_SEED
    params: arguments=lambda w: FLOW.arguments("proxy", w.artifact)
    log: "logs/proxy/{artifact}-{seed}.log"
    message: "proxy set {wildcards.artifact}, seed {wildcards.seed}"
    shell: "fedrepro proxy {params.arguments} --seeds {wildcards.seed} > {log} 2>&1"

rule init_seed:
    output: expand("data/init/{{artifact}}/seed{{seed}}{ending}", ending=[".safetensors", ".json"])
    wildcard_constraints: seed=OTHER_SEED
    params: arguments=lambda w: FLOW.arguments("init", w.artifact)
    log: "logs/init/{artifact}-{seed}.log"
    message: "initial model {wildcards.artifact}, seed {wildcards.seed}"
    shell: "fedrepro init {params.arguments} --seeds {wildcards.seed} > {log} 2>&1"
