# Evidence -> reports. Reports are rendered from evidence alone, so a clone that has it renders without training. Outputs are `update`:
# a job that fails leaves what was there, and the Snakefile's onerror sees to it that the next call tries again.

# A table's report is a page, a figure's a picture with its data; all else is the same for both.
TABLE, FIGURE = (rf"{kind}\d+(-[a-z0-9]+)*" for kind in ("table", "figure"))

rule reports:
    input: FLOW.reports(), "results/summary.json", "results/means.json"
    message: "all reports are there"

rule plan:
    input: lambda w: FLOW.plan_files(w.scale, w.paper, w.table)
    output: "results/plans/{scale}/{paper}/{table}.json"
    params: content=lambda w: FLOW.plan_params(w.scale)
    log: "logs/plan/{scale}-{paper}-{table}.log"
    message: "plan of {wildcards.paper} {wildcards.table}, scale {wildcards.scale}"
    shell:
        "fedrepro plan {wildcards.paper}/{wildcards.table} --scale {wildcards.scale} --params {params.content:q} --out {output} > {log} 2>&1"

# Evidence that is settled is a source like any other: nothing that it was once made from is looked at, drawn or trained.
rule evidence:
    input: receipt=lambda w: FLOW.origin(w.run_id, w.seed), missing=lambda w: FLOW.missing(w.scale)
    output: update("reports/{scale}/{paper}/evidence/{run_id}/seed{seed}.json")
    wildcard_constraints: scale=rf"(?!(?:{FLOW.settled})$)[a-z-]+"
    log: "logs/evidence/{scale}-{paper}-{run_id}-{seed}.log"
    message: "evidence of {wildcards.run_id}, seed {wildcards.seed}"
    shell: "fedrepro evidence {input.receipt} {output} > {log} 2>&1"

# Of a tuned table: which candidates are chosen, and so what else there is to train.
checkpoint choice:
    input:
        plan="results/plans/{scale}/{paper}/{table}.json",
        evidence=lambda w: FLOW.trials(w.scale, w.paper, w.table),
    output: "results/choices/{scale}/{paper}/{table}.json"
    log: "logs/choice/{scale}-{paper}-{table}.log"
    message: "choice between candidates: {wildcards.paper} {wildcards.table}, scale {wildcards.scale}"
    shell: "fedrepro choose {input.plan} --out {output} > {log} 2>&1"

rule track:
    input:
        plan="results/plans/{scale}/{paper}/{table}.json",
        evidence=lambda w: FLOW.evidence(w.scale, w.paper, w.table, checkpoints),
    output: "results/tracked/{scale}/{paper}/{table}.json"
    log: "logs/track/{scale}-{paper}-{table}.log"
    message: "MLflow: {wildcards.paper} {wildcards.table}, scale {wildcards.scale}"
    shell: "fedrepro track {input.plan} --out {output} > {log} 2>&1"

rule report:
    input:
        plan="results/plans/{scale}/{paper}/{table}.json",
        evidence=lambda w: FLOW.shown(w.scale, w.paper, w.table, checkpoints),
        tracked="results/tracked/{scale}/{paper}/{table}.json",
    output:
        update(expand("reports/{{scale}}/{{paper}}/{{table}}{ending}", ending=[".md", ".json"])),
        update(report("reports/{scale}/{paper}/{table}.html", caption="captions/table.rst", category="{paper}", subcategory="{scale}", labels={"page": "{table}"})),
    wildcard_constraints: table=TABLE
    log: "logs/report/{scale}-{paper}-{table}.log"
    message: "report of {wildcards.paper} {wildcards.table}, scale {wildcards.scale}"
    shell: "fedrepro report {input.plan} --out reports/{wildcards.scale}/{wildcards.paper}/{wildcards.table} > {log} 2>&1"

rule figure:
    input:
        plan="results/plans/{scale}/{paper}/{table}.json",
        evidence=lambda w: FLOW.shown(w.scale, w.paper, w.table, checkpoints),
        tracked="results/tracked/{scale}/{paper}/{table}.json",
    output:
        update(report("reports/{scale}/{paper}/{table}.svg", caption="captions/drawn.rst", category="{paper}", subcategory="{scale}", labels={"page": "{table}"})),
        update(expand("reports/{{scale}}/{{paper}}/{{table}}{ending}", ending=[".csv", ".json"])),
    wildcard_constraints: table=FIGURE
    log: "logs/report/{scale}-{paper}-{table}.log"
    message: "figure {wildcards.paper} {wildcards.table}, scale {wildcards.scale}"
    shell: "fedrepro figure {input.plan} --out reports/{wildcards.scale}/{wildcards.paper}/{wildcards.table} > {log} 2>&1"

# params.yaml's scale and values under a short name: reports/table3.md is FedLAW's, reports/igfl/table1.md another paper's.
rule current_fedlaw:
    input: lambda w: FLOW.current_files("fedlaw", w.table), plan=lambda w: FLOW.current_plan("fedlaw", w.table)
    output: update(expand("reports/{{table}}{ending}", ending=[".md", ".html", ".json"]))
    wildcard_constraints: table=TABLE
    log: "logs/report/current-fedlaw-{table}.log"
    message: "reports/{wildcards.table}.md"
    shell: "fedrepro report {input.plan} --out reports/{wildcards.table} > {log} 2>&1"

rule current:
    input: lambda w: FLOW.current_files(w.paper, w.table), plan=lambda w: FLOW.current_plan(w.paper, w.table)
    output: update(expand("reports/{{paper}}/{{table}}{ending}", ending=[".md", ".html", ".json"]))
    wildcard_constraints: table=TABLE
    log: "logs/report/current-{paper}-{table}.log"
    message: "reports/{wildcards.paper}/{wildcards.table}.md"
    shell: "fedrepro report {input.plan} --out reports/{wildcards.paper}/{wildcards.table} > {log} 2>&1"

rule current_figure_fedlaw:
    input: lambda w: FLOW.current_files("fedlaw", w.table), plan=lambda w: FLOW.current_plan("fedlaw", w.table)
    output: update(expand("reports/{{table}}{ending}", ending=[".svg", ".csv", ".json"]))
    wildcard_constraints: table=FIGURE
    log: "logs/report/current-fedlaw-{table}.log"
    message: "reports/{wildcards.table}.svg"
    shell: "fedrepro figure {input.plan} --out reports/{wildcards.table} > {log} 2>&1"

rule current_figure:
    input: lambda w: FLOW.current_files(w.paper, w.table), plan=lambda w: FLOW.current_plan(w.paper, w.table)
    output: update(expand("reports/{{paper}}/{{table}}{ending}", ending=[".svg", ".csv", ".json"]))
    wildcard_constraints: table=FIGURE
    log: "logs/report/current-{paper}-{table}.log"
    message: "reports/{wildcards.paper}/{wildcards.table}.svg"
    shell: "fedrepro figure {input.plan} --out reports/{wildcards.paper}/{wildcards.table} > {log} 2>&1"

rule summary:
    input: FLOW.documents()
    output: "results/summary.json", "results/means.json"
    log: "logs/report/summary.log"
    message: "means of all tables, for dvc metrics"
    shell: "fedrepro summary {input} --out {output[0]} > {log} 2>&1"
