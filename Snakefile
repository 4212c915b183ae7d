# The only graph: data -> what is drawn -> training -> reports. Loads and validates here, rules live in rules/*.smk.
from fedrepro.workflow import session
from fedrepro.workflow.graph import Workflow

session.require_params()

configfile: "params.yaml"

FLOW = Workflow.load(config, workflow)

wildcard_constraints:
    place=r"(((demo|short|full)/)?[a-z0-9_]+/)?",  # of a report: full/fedgh/ as the paper has it, fedgh/ with params.yaml's values
    table=r"(table|figure)\d+(-[a-z0-9]+)*",
    dataset=r"[a-z0-9_-]+",
    shape=r"\d+(x\d+x\d+)?",  # of images, or the length of windows of text
    drawn="partitions|participation|proxy|init",
    artifact=r"[A-Za-z0-9_.-]+",
    run_id=r"[A-Za-z0-9_.+-]+",
    call=r"[a-z0-9_]+-[0-9a-f]{6}",
    seeds=r"\d+(-\d+)*",

localrules: data, arrays, partitions, draw, runs, reports, choice, track, table, figure, page, summary, overview, site

rule reports:
    input: FLOW.reports(), "results/summary.json", "results/means.json"
    message: "all reports are there"
    default_target: True

include: "rules/train.smk"
include: "rules/report.smk"

onstart:
    session.begin(FLOW, workflow)

onsuccess:
    session.repeat_errors()

onerror:
    session.repeat_errors()
