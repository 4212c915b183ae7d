# Models of chosen rounds -> what diagnostics measure on them -> evidence. A training keeps the models on its way, so `keep` finds them there;
# a seed that was finished before is trained again as far as needed. The models lie outside of rule outputs, as results do.

rule keep:
    input:
        config=ancient("results/configs/{run_id}.json"),
        receipt=lambda w: FLOW.origin(w.run_id, w.seed),
        data=ancient(lambda w: FLOW.inputs_of(w.run_id, [w.seed])),
        lacking=lambda w: FLOW.lacking(w.run_id, w.seed),
    output: "results/kept/{run_id}/seed{seed}.json"
    params: rounds=lambda w: FLOW.keep(w.run_id)
    log: "logs/keep/{run_id}-{seed}.log"
    threads: FLOW.workers
    resources: gpu=FLOW.gpus_per_run
    message: "models of {wildcards.run_id}, seed {wildcards.seed}"
    shell:
        "fedrepro run {input.config} --seeds {wildcards.seed} --keep {params.rounds} --device {FLOW.device} --workers {threads} --log {log}"

rule diagnose:
    input:
        config=ancient("results/configs/{run_id}.json"),
        kept="results/kept/{run_id}/seed{seed}.json",
        data=ancient(lambda w: FLOW.inputs_of(w.run_id, [w.seed])),
    output: update("results/diagnostics/{run_id}/{call}/seed{seed}.parquet")
    params: call=lambda w: FLOW.calls[w.call]
    log: "logs/diagnose/{run_id}-{call}-{seed}.log"
    resources: gpu=FLOW.gpus_per_run
    message: "{params.call} of {wildcards.run_id}, seed {wildcards.seed}"
    shell: "fedrepro diagnose {params.call:q} {input.config} --seeds {wildcards.seed} --device {FLOW.device} > {log} 2>&1"

rule measured:
    input: measured=lambda w: FLOW.measured(w.scale, w.paper, w.run_id, w.call, w.seed), missing=lambda w: FLOW.missing(w.scale)
    output: update("reports/{scale}/{paper}/evidence/{run_id}/{call}/seed{seed}.parquet")
    wildcard_constraints: scale=rf"(?!(?:{FLOW.settled})$)[a-z-]+"
    log: "logs/evidence/{scale}-{paper}-{run_id}-{call}-{seed}.log"
    message: "evidence of {wildcards.call}, {wildcards.run_id}, seed {wildcards.seed}"
    shell: "fedrepro evidence {input.measured} {output} > {log} 2>&1"
