# The only graph: data -> partitions -> training -> evidence -> reports. Loads and validates here, rules live in rules/*.smk.
from fedrepro import startup
from fedrepro.workflow import Workflow, session

startup.begin()

configfile: "params.yaml"

FLOW = Workflow.load(config)
session.shorten(workflow)

wildcard_constraints:
    scale="(edited-)?(demo|short|full)",
    paper=FLOW.papers,
    table=r"(table|figure)\d+(-[a-z0-9]+)*",
    dataset=r"[a-z0-9_-]+",
    shape=r"\d+(x\d+x\d+)?",  # of images, or the length of windows of text
    artifact=r"[A-Za-z0-9_.-]+",
    run_id=r"[A-Za-z0-9_.+-]+",
    call=r"[a-z0-9_]+-[0-9a-f]{6}",
    seed=r"\d+",

localrules: all, data, partitions, runs, reports, config, plan, evidence, measured, choice, track, report, figure, current_fedlaw
localrules: current, current_figure_fedlaw, current_figure, current_page, summary, page, overview, site

rule all:
    input: FLOW.reports(), "results/summary.json", "results/means.json"
    message: "all reports are there"
    default_target: True

include: "rules/data.smk"
include: "rules/partition.smk"
include: "rules/train.smk"
include: "rules/diagnose.smk"
include: "rules/report.smk"
include: "rules/site.smk"

# The lock is taken only when something really runs; the kernel frees it when the process dies.
onstart:
    session.begin(FLOW, workflow)

onerror:
    session.forget_unfinished(workflow)
    session.repeat_errors()
