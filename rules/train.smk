# Data, all that is drawn from it, and training. Inputs are `ancient`: a path names everything that decides its content (arrays name their
# entry of the registry in a manifest, which the graph compares), so a file's time draws or trains nothing again. A job's output is a marker
# with its seeds and a hash of their files. The results lie beside it and decide whether it holds (`fedrepro.workflow.jobs`).

rule data:
    input: lambda _: FLOW.inputs(drawn=False)
    message: "all data sets are there"

rule arrays:
    input: lambda w: FLOW.forget_outdated(w.dataset, w.shape)
    output:
        manifest="data/arrays/{dataset}/{shape}/manifest.json",
        arrays=expand("data/arrays/{{dataset}}/{{shape}}/{name}.npy", name=["train_images", "train_labels", "test_images", "test_labels"]),
    log: "logs/arrays/{dataset}-{shape}.log"
    message: "data set {wildcards.dataset} as {wildcards.shape}"
    shell: "fedrepro data {wildcards.dataset} --shape {wildcards.shape} > {log} 2>&1"

rule partitions:
    input: lambda _: FLOW.inputs()
    message: "all that is drawn is there"

# Partitions, cohorts, proxy splits and initial models: drawn once for each seed, the same for every method.
rule draw:
    input: lambda w: FLOW.settled([FLOW.native(w.drawn, w.artifact)])
    output: "data/{drawn}/{artifact}/jobs/{seeds}"
    params: seeds=lambda w: w.seeds.split("-")
    log: "logs/draw/{drawn}-{artifact}-{seeds}.log"
    benchmark: "logs/draw/{drawn}-{artifact}-{seeds}.tsv"
    message: "{wildcards.drawn} {wildcards.artifact}, seeds {wildcards.seeds}"
    shell: "fedrepro draw results/configs/{wildcards.drawn}/{wildcards.artifact}.json --seeds {params.seeds} --done {output} > {log} 2>&1"

rule runs:
    input: lambda _: FLOW.trained(checkpoints)
    message: "all runs are there"

# SIGTERM is for `fedrepro`: a shell between it and Snakemake would end at once and leave the training behind.
rule train:
    input: lambda w: FLOW.settled(FLOW.inputs_of(w.run_id, w.seeds.split("-")))
    output: "results/runs/{run_id}/jobs/{seeds}"
    group: lambda w: FLOW.needs(w.run_id, w.seeds).group
    params: seeds=lambda w: w.seeds.split("-")
    log: "logs/train/{run_id}-{seeds}.log"
    threads: lambda _: FLOW.workers
    resources:
        gpu=lambda _: int(FLOW.device == "cuda"),
        mem_mb=lambda w, attempt: FLOW.needs(w.run_id, w.seeds).at(attempt).mem_mb,
        runtime=lambda w, attempt: FLOW.needs(w.run_id, w.seeds).at(attempt).minutes,
    message: "train {wildcards.run_id}, seeds {wildcards.seeds}"
    shell:
        "exec fedrepro run results/configs/{wildcards.run_id}.json --seeds {params.seeds} --device {FLOW.device} --workers {threads} "
        "--log {log} --done {output}"

# A training keeps the models of the rounds that tables ask for. A seed that was finished before is trained again as far as needed.
rule diagnose:
    input: "results/runs/{run_id}/jobs/{seeds}"
    output: "results/diagnostics/{run_id}/{call}/jobs/{seeds}"
    params: measures=lambda w: FLOW.measures(w.run_id, w.call), seeds=lambda w: w.seeds.split("-")
    log: "logs/diagnose/{run_id}-{call}-{seeds}.log"
    threads: lambda _: FLOW.workers
    resources:
        gpu=lambda _: int(FLOW.device == "cuda"),
        mem_mb=lambda w, attempt: FLOW.needs(w.run_id, w.seeds).at(attempt).mem_mb,
        runtime=lambda w, attempt: FLOW.needs(w.run_id, w.seeds).at(attempt).minutes,
    message: "{params.measures[0]} of {wildcards.run_id}, seeds {wildcards.seeds}"
    shell:
        "exec fedrepro diagnose {params.measures[0]:q} results/configs/{wildcards.run_id}.json --train --seeds {params.seeds} "
        "--rounds {params.measures[1]} --device {FLOW.device} --workers {threads} --log {log} --done {output}"
