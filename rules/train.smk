# Training: one job a run (a setting and a method), all seeds. Its outputs are the receipts of its seeds; the results themselves and the
# checkpoints lie outside, where no failed or repeated job can delete them.

rule runs:
    input: FLOW.receipts()

rule plan:
    input: "params.yaml", "papers/scales.yaml", "data/registry.yaml", "papers/{paper}/paper.yaml", "papers/{paper}/tables/{table}.yaml"
    output: "results/plans/{scale}/{paper}/{table}.json"
    params: content=FLOW.params_json
    log: "logs/plan/{scale}-{paper}-{table}.log"
    message: "plan of {wildcards.paper} {wildcards.table}, scale {wildcards.scale}"
    shell:
        "fedrepro plan {wildcards.paper}/{wildcards.table} --scale {wildcards.scale} --params {params.content:q} --out {output} > {log} 2>&1"

rule train:
    input:
        plan=ancient(lambda w: FLOW.plan_of(w.run_id)),
        data=ancient(lambda w: FLOW.inputs_of(w.run_id)),
    output: expand("results/runs/{{run_id}}/seed{seed}.json", seed=FLOW.seeds)
    log: "logs/train/{run_id}.log"
    benchmark: "logs/train/{run_id}.tsv"
    resources: gpu=FLOW.gpus_per_run
    message: "train {wildcards.run_id}"
    shell:
        "fedrepro run {input.plan} --run-id {wildcards.run_id} --seeds {FLOW.seeds} --device {FLOW.device} --log {log}"
