# Evidence -> reports: published evidence, which is a source, or else what was trained here. A clone that has it renders without training.
# Published files count by their content (`published`), those of this folder by that of their markers: times say nothing.

# Of a tuned table: which candidates are chosen, and so what else there is to train.
checkpoint choice:
    input: lambda w: FLOW.trials(w.place, w.table), plan=lambda w: FLOW.plan_file(w.place, w.table)
    output: "results/choices/{place}{table}.json"
    params: published=lambda w: FLOW.published(w.place, [w.table])
    log: "logs/choice/{place}{table}.log"
    message: "choice between candidates: {wildcards.place}{wildcards.table}"
    shell: "fedrepro choose {input.plan} --out {output} > {log} 2>&1"

rule track:
    input: lambda w: FLOW.evidence(w.place, w.table, checkpoints), plan=lambda w: FLOW.plan_file(w.place, w.table)
    output: "results/tracked/{place}{table}.json"
    params: published=lambda w: FLOW.published(w.place, [w.table])
    log: "logs/track/{place}{table}.log"
    message: "MLflow: {wildcards.place}{wildcards.table}"
    shell: "fedrepro track {input.plan} --out {output} > {log} 2>&1"

# A table's report is a page, a figure's a picture with its data; all else is the same for both.
rule table:
    input:
        lambda w: FLOW.evidence(w.place, w.table, checkpoints),
        plan=lambda w: FLOW.plan_file(w.place, w.table),
        tracked="results/tracked/{place}{table}.json",
    output:
        expand("reports/{{place}}{{table}}{ending}", ending=[".md", ".json", ".csv", ".tex"]),
        report("reports/{place}{table}.html", caption="captions/table.rst", category=lambda w: w.place or "fedlaw/", labels={"page": "{table}"}),
    wildcard_constraints: table=r"table\d+(-[a-z0-9]+)*"
    params: published=lambda w: FLOW.published(w.place, [w.table])
    log: "logs/report/{place}{table}.log"
    message: "reports/{wildcards.place}{wildcards.table}.md"
    shell: "fedrepro report {input.plan} --out reports/{wildcards.place}{wildcards.table} > {log} 2>&1"

use rule table as figure with:
    output:
        report("reports/{place}{table}.svg", caption="captions/drawn.rst", category=lambda w: w.place or "fedlaw/", labels={"page": "{table}"}),
        expand("reports/{{place}}{{table}}{ending}", ending=[".csv", ".json"]),
    wildcard_constraints: table=r"figure\d+(-[a-z0-9]+)*"
    message: "reports/{wildcards.place}{wildcards.table}.svg"

# All of a paper. Under a short name it trains what is missing; below a scale it has the evidence that is there.
rule page:
    input: unpack(lambda w: FLOW.page(w.place))
    output:
        expand("reports/{{place}}{name}", name=["index.md", "index.json", "details.md", "details.html"]),
        report("reports/{place}index.html", caption="captions/page.rst", category="{place}", labels={"page": "all tables"}),
        report(directory("reports/{place}figures/index"), patterns=["{figure}.svg"], caption="captions/figure.rst", category="{place}", labels={"page": "{figure}"}),
    params: rendered=lambda w: FLOW.rendered(w.place), published=lambda w: FLOW.published(w.place)
    wildcard_constraints: place=r"((demo|short|full)/)?[a-z0-9_]+/"
    log: "logs/report/{place}index.log"
    message: "reports/{wildcards.place}index.html"
    shell: "fedrepro page {input.plans} --out reports/{wildcards.place} > {log} 2>&1"

rule summary:
    input: FLOW.reports("json", figure="")
    output: "results/summary.json", "results/means.json"
    log: "logs/report/summary.log"
    message: "means of all tables, for dvc metrics"
    shell: "fedrepro summary {input} --out {output[0]} > {log} 2>&1"

# What holds, by the published pages; committed beside them.
rule overview:
    input: FLOW.pages(["full", "short"])
    output: "reports/README.md", report("reports/index.html", category="all pages", labels={"page": "what holds"})
    log: "logs/report/overview.log"
    message: "what holds, of all papers"
    shell: "fedrepro overview {input} > {log} 2>&1"

rule site:
    input: FLOW.pages()
    output: "reports/all.md", report("reports/all.html", category="all pages", labels={"page": "list of all pages"})
    log: "logs/report/all.log"
    message: "list of all pages"
    shell: "fedrepro site {input} > {log} 2>&1"
