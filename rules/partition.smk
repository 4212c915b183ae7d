# What is drawn once for each seed and is the same for every method. Inputs are `ancient`: a path names everything that decides
# its content, so a file's time never draws anything again. Outputs are `update`: a new seed is drawn beside the others.

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
