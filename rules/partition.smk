# What is drawn once for each seed and is the same for every method. Inputs are `ancient`: a path names everything that decides
# its content, so a file's time never draws anything again.

rule partitions:
    input: FLOW.drawn()

rule partition:
    input: ancient(lambda w: FLOW.native_manifest("partition", w.artifact))
    output: multiext("data/partitions/{artifact}/seed{seed}", ".npz", ".json", ".svg")
    params: arguments=lambda w: FLOW.arguments("partition", w.artifact)
    log: "logs/partition/{artifact}-{seed}.log"
    benchmark: "logs/partition/{artifact}-{seed}.tsv"
    message: "partition {wildcards.artifact}, seed {wildcards.seed}"
    shell: "fedrepro partition {params.arguments} --seed {wildcards.seed} > {log} 2>&1"

rule participation:
    output: multiext("data/participation/{artifact}/seed{seed}", ".npz", ".json")
    params: arguments=lambda w: FLOW.arguments("participation", w.artifact)
    log: "logs/participation/{artifact}-{seed}.log"
    benchmark: "logs/participation/{artifact}-{seed}.tsv"
    message: "cohorts {wildcards.artifact}, seed {wildcards.seed}"
    shell: "fedrepro participation {params.arguments} --seed {wildcards.seed} > {log} 2>&1"

rule proxy:
    input: ancient(lambda w: FLOW.native_manifest("proxy", w.artifact))
    output: multiext("data/proxy/{artifact}/seed{seed}", ".npz", ".json")
    params: arguments=lambda w: FLOW.arguments("proxy", w.artifact)
    log: "logs/proxy/{artifact}-{seed}.log"
    benchmark: "logs/proxy/{artifact}-{seed}.tsv"
    message: "proxy set {wildcards.artifact}, seed {wildcards.seed}"
    shell: "fedrepro proxy {params.arguments} --seed {wildcards.seed} > {log} 2>&1"

rule init:
    output: multiext("data/init/{artifact}/seed{seed}", ".safetensors", ".json")
    params: arguments=lambda w: FLOW.arguments("init", w.artifact)
    log: "logs/init/{artifact}-{seed}.log"
    benchmark: "logs/init/{artifact}-{seed}.tsv"
    message: "initial model {wildcards.artifact}, seed {wildcards.seed}"
    shell: "fedrepro init {params.arguments} --seed {wildcards.seed} > {log} 2>&1"
