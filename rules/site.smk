# One page per paper and scale, and the list of all pages. Rendered from the evidence that is there when the workflow starts: they never
# train, so a page that shall show new runs is asked for again after them. A paper's short name, reports/igfl/index.html, trains.

rule page:
    input:
        plans=lambda w: FLOW.page_plans(w.scale, w.paper),
        evidence=lambda w: FLOW.page_evidence(w.scale, w.paper),
        words=lambda w: FLOW.page_words(w.paper),
    output:
        update(expand("reports/{{scale}}/{{paper}}/{name}", name=["index.md", "index.json", "details.md", "details.html"])),
        update(report("reports/{scale}/{paper}/index.html", caption="captions/page.rst", category="{paper}", subcategory="{scale}", labels={"page": "all tables"})),
        report(update(directory("reports/{scale}/{paper}/figures/index")), patterns=["{figure}.svg"], caption="captions/figure.rst", category="{paper}", subcategory="{scale}", labels={"page": "{figure}"}),
    params: rendered=lambda w: FLOW.rendered(w.scale, w.paper)
    log: "logs/report/{scale}-{paper}-index.log"
    message: "page of {wildcards.paper}, scale {wildcards.scale}"
    shell: "fedrepro page {input.plans} > {log} 2>&1"

# All of a paper at params.yaml's scale, under a short name. Other than the page of a scale it trains what is missing.
rule current_page:
    input:
        lambda w: [path for table in FLOW.page_tables(FLOW.current(w.paper), w.paper) for path in FLOW.current_files(w.paper, table)],
        plans=lambda w: FLOW.page_plans(FLOW.current(w.paper), w.paper),
        words=lambda w: FLOW.page_words(w.paper),
    output:
        update(expand("reports/{{paper}}/{name}", name=["index.md", "index.html", "index.json", "details.md", "details.html"])),
        update(directory("reports/{paper}/figures/index")),
    log: "logs/report/current-{paper}-index.log"
    message: "reports/{wildcards.paper}/index.html"
    shell: "fedrepro page {input.plans} --out reports/{wildcards.paper}/index > {log} 2>&1"

# What holds, by the published pages; committed beside them.
rule overview:
    input: FLOW.pages(published=True)
    output: update("reports/README.md"), update(report("reports/index.html", category="all pages", labels={"page": "what holds"}))
    log: "logs/report/overview.log"
    message: "what holds, of all papers"
    shell: "fedrepro overview {input} > {log} 2>&1"

rule site:
    input: FLOW.pages()
    output: "reports/all.md", report("reports/all.html", category="all pages", labels={"page": "list of all pages"})
    log: "logs/report/all.log"
    message: "list of all pages"
    shell: "fedrepro site {input} > {log} 2>&1"
