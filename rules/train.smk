# Training: one job a run (a setting and a method), all seeds. Its outputs are the receipts of its seeds; the results themselves and the
# checkpoints lie outside, where no failed or repeated job can delete them. The rounds whose models are kept are a resource, since another
# choice of them trains nothing again: a parameter would.

rule runs:
    input: lambda w: FLOW.receipts(checkpoints)
    message: "all runs are there"

# What one run is. Its content follows from the run_id, so it never changes once it is there. (It must not: in Snakemake 9.27 a job whose
# ancient input is made again is dropped, even when its own outputs are missing.)
rule config:
    output: "results/configs/{run_id}.json"
    params: content=lambda w: FLOW.config_json(w.run_id)
    log: "logs/config/{run_id}.log"
    message: "configuration of {wildcards.run_id}"
    shell: "fedrepro config {params.content:q} --out {output} > {log} 2>&1"

rule train:
    input:
        config=ancient("results/configs/{run_id}.json"),
        data=ancient(lambda w: FLOW.inputs_of(w.run_id, FLOW.seeds)),
    output: expand("results/runs/{{run_id}}/seed{seed}.json", seed=FLOW.seeds)
    wildcard_constraints: run_id=rf"(?!(?:{FLOW.apart})/)[A-Za-z0-9_.+-]+"
    log: "logs/train/{run_id}.log"
    threads: FLOW.workers
    resources: gpu=FLOW.gpus_per_run, keep=lambda w: FLOW.keep(w.run_id)
    message: "train {wildcards.run_id}"
    shell:
        "fedrepro run {input.config} --seeds {FLOW.seeds} --device {FLOW.device} --workers {threads} --keep {resources.keep} --log {log}"

# Other seeds than params.yaml's, of a budget or a published report: a job a seed, since the outputs of the rule above are params.yaml's.
rule train_seed:
    input:
        config=ancient("results/configs/{run_id}.json"),
        data=ancient(lambda w: FLOW.inputs_of(w.run_id, [w.seed])),
    output: "results/runs/{run_id}/seed{seed}.json"
    wildcard_constraints: run_id=rf"(?:{FLOW.apart})(?=/)|[A-Za-z0-9_.+-]+(?=/seed(?!(?:{'|'.join(map(str, FLOW.seeds))})\.))"
    log: "logs/train/{run_id}-{seed}.log"
    threads: FLOW.workers
    resources: gpu=FLOW.gpus_per_run, keep=lambda w: FLOW.keep(w.run_id)
    message: "train {wildcards.run_id}, seed {wildcards.seed}"
    shell:
        "fedrepro run {input.config} --seeds {wildcards.seed} --device {FLOW.device} --workers {threads} --keep {resources.keep} --log {log}"
