"""A rendered report: its content, its stable bytes, and its links."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from small_table import SOME, exhibit, make_evidence, make_plan, make_run, typed, with_settings, write_evidence

from fedrepro.config.reading import EDITED
from fedrepro.engine.records import seal
from fedrepro.errors import UserError
from fedrepro.exhibits.evidence import _require_same
from fedrepro.exhibits.kinds import panels
from fedrepro.exhibits.means import _column, load_table, write_means, write_summary
from fedrepro.exhibits.render import render
from fedrepro.exhibits.sections.about import about_the_runs
from fedrepro.exhibits.settings import reported, run_here
from fedrepro.exhibits.write.svg import inline
from fedrepro.files import read_json, write_json
from fedrepro.store import Store

A, B = "mlp-a100", "mlp-a01"


def make_report(root: Path, scale: str = "demo", accuracies=SOME, stem: str | None = None, **changes) -> dict[str, Path]:
    """Writes a plan and its evidence below `root`, which must be the working directory, and renders them. Returns the files by
    ending."""
    plan = make_plan(scale, **changes)
    evidence = Path("reports", scale, "fedlaw", "evidence")
    write_evidence(root / evidence, plan, accuracies)
    plan_path = Path("results", "plans", scale, "fedlaw", "table3.json")
    write_json(root / plan_path, plan)
    written = render(plan_path, Store((evidence,)), Path(stem or f"reports/{scale}/fedlaw/table3"))
    return {path.suffix[1:]: path for path in reversed(written)}


@pytest.fixture(autouse=True)
def in_project(tmp_path, monkeypatch):
    """Commands run in the project root."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.drawn
def test_same_plan_and_evidence_same_bytes(tmp_path):
    """The bytes do not depend on earlier files, or on the times of evidence."""
    first = {ending: path.read_bytes() for ending, path in make_report(tmp_path).items()}
    for receipt in tmp_path.glob("reports/demo/fedlaw/evidence/*/*.json"):
        os.utime(receipt, (1, 1))
    assert {ending: path.read_bytes() for ending, path in make_report(tmp_path).items()} == first


def test_the_report_says_first_what_it_is(tmp_path):
    """Scale, data, seeds and missing runs come before the table. Shapes, device, dates and commit come after it."""
    opening, _, rest = make_report(tmp_path)["md"].read_text().partition("## The table")
    for fact in ("demo scale", "not comparable", "Run here: digits", "8, 9, 10", "14 of 15 runs"):
        assert fact in opening, fact
    about = rest.partition("## About the runs")[2].partition("##")[0]
    for fact in ("digits (1×28×28)", "8, 9, 10", "cpu, Some CPU", "2026-11-20 10:00", "0a1b2c3d", "14 of 15 runs"):
        assert fact in about, fact


def test_what_is_averaged_is_said():
    """The cells are the mean of the last 2 of 5 rounds. If columns differ, each has its own text."""
    plan = make_plan()
    for cell in plan["cells"]:
        if cell["column"] == B and cell["run_id"]:
            run = with_settings(plan["runs"][cell["run_id"]], rounds=1)
            plan["runs"][run["run_id"]], cell["run_id"] = run, run["run_id"]
    label = "FashionMNIST · MLP, α = "
    said = [str(one) for one in reported(typed(plan)[0])]
    assert said == [f"mean of the last 2 of 5 rounds ({label}100)", f"the only round ({label}0.1)"]


@pytest.mark.parametrize("scale", ["short", "full"])
def test_a_stand_in_on_a_budget_says_so_first(tmp_path, scale):
    """The stand-in, the budget's note and "not comparable" come before the table at any scale."""
    said = {
        "stand_in": "Other images in the place of the printed ones.",
        "on_budget": True,
        "scale_note": "Two rounds, one seed.",
        "remarks": ["The first method ends at {mean:fedavg/mlp-a100}."],
    }
    pages = make_report(tmp_path, scale, comparable=False, **said)
    assert {cell["status"] for cell in read_json(pages["json"])["cells"]} <= {"not comparable", "not run", "not printed"}
    for ending in ("md", "html"):
        opening = pages[ending].read_text().split("The table</h2>" if ending == "html" else "## The table")[0]
        for fact in (
            f"{scale.capitalize()} scale, on a budget: these numbers are not comparable",
            *(said["stand_in"], said["scale_note"]),
        ):
            assert fact in opening, fact
        assert "of other data and for orientation only" in pages[ending].read_text()
        assert (
            "The first method ends at 8" in pages[ending].read_text().split("What these numbers show")[1].split("Every seed")[0]
        )


@pytest.mark.parametrize("ending", ["md", "html"])
def test_the_report_says_what_was_run(tmp_path, ending):
    """Below full scale: data, rounds of the paper's rounds, seeds and share of cells, all from the plan."""
    text = make_report(tmp_path, "short", seeds=[4])[ending].read_text()
    assert "Run here: digits; 5 of the paper's 200 rounds; seed 4; 5 of 6 cells." in text
    assert "Run here" not in make_report(tmp_path, "full")[ending].read_text()


def test_what_was_run_names_places_only_where_they_differ():
    """A group of columns without differences inside is named by the group."""
    plan = make_plan("short")
    plan["columns"][1]["group"] = "other"
    for cell in plan["cells"]:
        cell["instead_of"] = {"dataset": "mnist"} | ({"rounds": 10} if cell["column"] == A else {"clients": 20})
        cell["unstated"] = {"clients": "ours"}
    assert run_here(typed(plan)[0]) == [
        "digits in the place of the paper's mnist",
        "5 of the paper's 10 rounds (FashionMNIST), all 5 rounds (other)",
        "clients 4 instead of our 20 (other)",
    ]


def test_rounds_of_params_yaml_are_not_all_there_are():
    plan = make_plan("short")
    for run in plan["runs"].values():
        run["sources"]["rounds"] = EDITED
    assert run_here(typed(plan)[0])[1] == "5 rounds"


@pytest.mark.parametrize("ending", ["md", "html"])
def test_a_variation_says_what_differs(tmp_path, ending):
    """A variation is never called the paper's protocol. It names its values and the labels of rows with a part of its own. Its
    departures from the paper are those of the table that it varies."""
    values = {"partition": ["iid", "dirichlet_balanced(alpha=0.01)"], "gh.order": ["ascending"], "methods": ["fedlaw"]}
    changes = {"varied": {"source": "Table 2", "values": values}}
    changes |= {"deviations": [{"id": "A-D1", "text": "FedDF steps by SGD.", "short": "SGD where the paper says Adam"}]}
    pages = make_report(tmp_path, "full", variant_of="table2", **changes)
    text = pages[ending].read_text()
    assert "Full scale: a variation of Table 2, which is not judged." in text
    assert "differs from Table 2 in gh.order: ascending; in partition: iid, dirichlet_balanced(alpha=0.01)." in text
    assert "It has rows that Table 2 does not have: FedLAW." in text
    departs = "Its settings depart from the paper's words where those of Table 2 do, but for what its rows and columns name."
    assert departs in text.replace("&#x27;", "'")
    assert "Full scale: the paper" not in text


@pytest.mark.parametrize(("scale", "banners"), [("full", ["banner good", "banner warn"]), ("demo", ["banner warn"])])
def test_a_good_message_is_not_a_warning(tmp_path, scale, banners):
    """At full scale a calm box says so. Missing and diverged runs are in an amber box."""
    text = make_report(tmp_path, scale)["html"].read_text()
    assert re.findall(r'<div class="(banner[^"]*)">', text) == banners
    assert "diverged; these cells have no mean" in text.split('banner warn">')[1].split("</div>\n</div>")[0]


@pytest.mark.parametrize("ending", ["md", "html"])
def test_how_to_run_the_other_variant(tmp_path, ending):
    """Each line is as in params.yaml, with keys joined by dots."""
    other = {"methods": {"fedlaw": {"feddyn": {"norm": "plain", "clip": 0.0}}}, "settings": {"keep_client_momentum": False}}
    gap = {"what": "FedDyn", "paper": "none", "authors_code": "plain", "followed": "ours", "other": other}
    text = make_report(tmp_path, disagreements=[gap])[ending].read_text()
    for line in (
        "methods.fedlaw.feddyn.norm: plain",
        "methods.fedlaw.feddyn.clip: 0.0",
        "settings.keep_client_momentum: false",
    ):
        assert f"`{line}`" in text if ending == "md" else f"<code>{line}</code>" in text


def test_cells_hold_mean_spread_and_printed_number(tmp_path):
    """One whole row of the Markdown table: the best measured number is bold and the best printed one underlined. Additional
    rows are below a line."""
    text = make_report(tmp_path)["md"].read_text()
    assert "| FedAvg | **89.50** ± 0.50 (3)<br><u>paper 89.29</u> | diverged at 1 of 3 seeds<br>paper 85.11 |" in text
    assert "| FedLAW | 88.20 ± 0.20 (3)<br>paper 88.51 | **86.25** ± 0.35 (2)<br><u>paper 86.30</u> |" in text
    assert text.index("additional rows (ours)") > text.index("| FedLAW |")
    assert "| FedAvg + GH | 87.10 ± 0.10 (3) | not run |" in text


def test_every_seed_and_every_reason_is_listed(tmp_path):
    """Diverged and missing seeds have different texts."""
    text = make_report(tmp_path)["md"].read_text()
    assert "| FedAvg | FashionMNIST · MLP, α = 0.1 | 85.00 | diverged | 86.00 | native | 1 of 3 seeds diverged: 9 |" in text
    assert "| FedLAW | FashionMNIST · MLP, α = 0.1 | 86.00 | 86.50 | – | native | 1 of 3 seeds not run yet: 10 |" in text
    assert "diverged at 1 of 3 seeds" in text.split("Every seed")[0]


@pytest.mark.parametrize("ending", ["md", "html"])
def test_cells_that_were_not_run_are_one_line(tmp_path, ending):
    """They are in the printed grid, and one line counts them with their reasons. No other table lists them."""
    text = make_report(tmp_path, accuracies={("fedavg", A): [89.0, 89.5, 90.0]})[ending].read_text()
    below = text.split("The table")[1].split("Every seed", 1)[1].split("What was run")[0]
    assert "Not run: 5 of 6 cells (4: not run yet; 1: this pair does not exist)." in below
    assert "α = 0.1" not in below


@pytest.mark.parametrize(
    ("portable", "cell", "fact"),
    [
        ((), "native", "not portable: another type of processor gives other last digits"),
        ((8, 9, 10), "portable", "portable in 1 of 5 cells with runs: the same bits on every x86-64 processor with AVX2"),
        ((8, 10), "mixed", "not portable: another type of processor gives other last digits"),
    ],
)
def test_every_cell_says_whether_it_is_portable(portable, cell, fact, tmp_path):
    """The environments of a cell's seeds decide. Evidence from before the choice is native. The facts on the runs count
    portable cells."""
    plan = make_plan()
    found = make_evidence(plan, SOME)
    run_id = next(c["run_id"] for c in plan["cells"] if (c["row"], c["column"]) == ("fedavg", A))
    for seed in portable:
        found[run_id][seed]["environment"]["arithmetic"] = "portable"
    table = exhibit(plan, found)
    shown = table.cell("fedavg", A)
    assert shown
    assert shown.arithmetic == cell
    ((facts,),) = (one.blocks for one in about_the_runs(table))
    assert dict(facts.pairs)["arithmetic"] == (fact,)


def test_sections_that_make_it_reproducible(tmp_path):
    """The page has settings with sources, disagreements, deviations, gaps and the command. A pipe in a text stays."""
    text = make_report(tmp_path)["md"].read_text()
    for expected in (
        "mean of the last 2 of 5 rounds",
        "| `average_last` | 2 | paper |",
        "| `client_lr` | 0.08 | paper, appendix D |",
        "| `partition` | dirichlet_per_class(alpha=100.0): FashionMNIST · MLP, α = 100<br>dirichlet_per_class(alpha=0.1)",
        "| server epochs | 100 | 20 | paper |  |",
        "| **D1** | Sampling before training. |",
        "- Batch size is not stated | in the paper.",
        "snakemake --cores 8 reports/demo/fedlaw/table3.md",
        "`sgd()+fedlaw(server_epochs=100, server_lr=0.01)`",
    ):
        assert expected in text, expected


@pytest.mark.parametrize("ending", ["md", "html"])
def test_what_a_deployment_would_send(tmp_path, ending):
    """20 client-rounds of 4000 bytes up and 8000 down. Older evidence without these counts shows a dash."""
    cells = cells_of(make_report(tmp_path)[ending], "Cost and evidence", "FedAvg", "2.5 s")
    assert cells[5:7] == ["4.0 kB / 8.0 kB", "80.0 kB / 160.0 kB"]
    for path in tmp_path.glob("reports/demo/fedlaw/evidence/*/*.json"):
        receipt = json.loads(path.read_text())
        for key in ("client_rounds", "bytes_up", "bytes_down"):
            del receipt["cost"][key]
        write_json(path, seal(receipt))
    paths = render(Path("results/plans/demo/fedlaw/table3.json"), Store((Path("reports/demo/fedlaw/evidence"),)), Path("x"))
    pages = {path.suffix[1:]: path for path in paths}
    assert cells_of(pages[ending], "Cost and evidence", "FedAvg", "2.5 s")[5:7] == ["–", "–"]


@pytest.mark.parametrize("ending", ["md", "html"])
def test_other_readings_and_tests_across_settings(tmp_path, ending):
    """89.0, 89.5 and 90.0 are means of two rounds, of which the second is half a point higher and the best. FedLAW against
    FedAvg: printed -0.78 and +1.19, measured -1.30 in the one setting without a diverged seed."""
    page = make_report(tmp_path)[ending]
    setting = "FashionMNIST · MLP, α = 100"
    assert cells_of(page, "Other ways to read a run", "FedAvg", setting) == [
        "FedAvg",
        setting,
        "89.50",
        "90.00",
        "90.00",
        "89.50",
    ]
    assert "The printed side is for orientation only" in page.read_text()
    scores = ["1–0–1", "+0.20", "1", "0–0–1", "−1.30", "1"]
    assert cells_of(page, "Across settings", "FedLAW", "FedAvg") == ["FedLAW", "FedAvg", "test accuracy", *scores]


def cells_of(page: Path, heading: str, *contents: str) -> list[str]:
    """The first table row below a heading whose first cell equals the first of `contents` and which contains the others."""
    text = page.read_text()
    text = text[text.index(heading) :]
    if page.suffix == ".md":
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    else:
        found = re.findall(r"<tr>(.*?)</tr>", text, flags=re.DOTALL)
        cells = [re.findall(r"<t[dh]\b[^>]*>(.*?)</t[dh]>", row) for row in found]
        rows = [[re.sub(r"<[^>]*>", "", cell).strip() for cell in row] for row in cells]
    return next(row for row in rows if row[:1] == [contents[0]] and all(content in row for content in contents[1:]))


@pytest.mark.parametrize(("stem", "own"), [("reports/demo/fedlaw/table3", False), ("reports/table3", True)])
def test_links_lead_to_files(tmp_path, stem, own):
    """Pictures, evidence and files for machines are linked relative to the page, with the paper's settings and with the
    user's."""
    pages = make_report(tmp_path, stem=stem, own=own)
    links = re.findall(r"\]\(([^)]+)\)", pages["md"].read_text())
    assert sum(link.endswith(".svg") for link in links) == 2
    assert sum("seed" in link for link in links) == 14
    assert {"table3.csv", "table3.tex", "table3.json"} <= {*links}
    links += re.findall(r'href="([^"#][^"]*)"', pages["html"].read_text())
    for link in links:
        assert (pages["md"].parent / link).resolve().is_file(), link


@pytest.mark.drawn
def test_pictures_inside_a_page_are_lean(tmp_path, monkeypatch):
    """An inlined picture has no fonts and no rotation by zero. Upright words stay upright. It is a third smaller, as is a curve
    of many rounds, whose points have no marks."""
    monkeypatch.setattr(panels, "FEW", 1)
    monkeypatch.setattr(panels, "MARKED", 1)
    picture = make_report(tmp_path)["svg"]
    alone, inside = picture.read_text(), inline(picture, "p")
    assert "DejaVu" in alone
    assert "font-family" not in inside
    assert "rotate(-0 " in alone
    assert re.findall(r"rotate\((\S+)", inside) == ["-90"] * alone.count("rotate(-90")
    assert alone.count("<text") == inside.count("<text") > 5
    assert len(inside) < 0.65 * len(alone)


def test_stale_pictures_go_and_foreign_ones_stay(tmp_path):
    """A picture of a column that left the table is deleted. Pictures of other tables stay."""
    figures = make_report(tmp_path)["svg"].parent
    (figures / "gone.svg").write_text("old")
    other = figures.parent / "table3-more" / "x.svg"
    other.parent.mkdir()
    other.write_text("other")
    make_report(tmp_path)
    assert sorted(path.name for path in figures.iterdir()) == ["mlp-a01.svg", "mlp-a100.svg"]
    assert other.read_text() == "other"


def test_inputs_that_differ_between_methods_are_reported():
    """Two methods of one column that name the same partition but read different bytes are not comparable."""
    plan = make_plan()
    found = make_evidence(plan, SOME)
    found[make_run("fedlaw", A)["run_id"]][8]["inputs"]["partition"] = "f" * 64
    (said,) = [one for one in exhibit(plan, found).warnings if one.startswith("Not all runs read the same")]
    assert re.search(r"partition \S+ at seed 8 \(\w{12}, f{12}\)\.", said)


def test_a_data_set_that_differs_between_seeds_is_reported():
    """Two methods read the same arrays at each seed, but not at all seeds."""
    plan = make_plan()
    found = make_evidence(plan, SOME)
    for seeds in found.values():
        for seed, receipt in seeds.items():
            receipt["inputs"]["arrays"] = ("b" if seed == 10 else "a") * 64
    (said,) = [one for one in exhibit(plan, found).warnings if "same arrays" in one]
    a, b = "a" * 12, "b" * 12
    assert said == f"Not all runs read the same arrays data/arrays/digits/1x28x28: seed 8 {a}; seed 9 {a}; seed 10 {b}."


@pytest.mark.parametrize(("key", "values"), [("arithmetic", ("native", "portable")), ("device", ("cpu", "cuda"))])
def test_seeds_of_unlike_arithmetic_or_device_are_said_before_the_numbers(key, values):
    """The cell keeps its mean, and the page warns."""
    plan = make_plan()
    found = make_evidence(plan, SOME)
    assert not any("unlike" in one for one in exhibit(plan, found).warnings)
    for seed, receipt in found[make_run("fedlaw", A)["run_id"]].items():
        receipt["environment"] = receipt["environment"] | {key: values[seed == 9]}
    what = "devices" if key == "device" else key
    said = f"1 of 6 cells have seeds that were trained with unlike {what}: {values[0]} and {values[1]}."
    assert said in exhibit(plan, found).warnings


def test_an_edited_protocol_is_said():
    """The warning names a setting of params.yaml, since the scale's note does not have it."""
    plan = make_plan("full")
    for run in plan["runs"].values():
        run["sources"]["rounds"] = "params.yaml"
    assert "params.yaml overrides what the table would take: rounds = 5." in exhibit(plan).warnings
    for run in plan["runs"].values():
        if "fedlaw" in run["method"]:
            run["argument_sources"] = {"fedlaw.server_lr": "params.yaml"}
    said = "params.yaml overrides what the table would take: fedlaw.server_lr = 0.01, rounds = 5."
    assert said in exhibit(plan).warnings


def test_a_column_of_the_summary_is_called_by_the_data_that_ran():
    """Of two data sets whose names begin alike the longer one is meant."""
    names = ("cifar10", "cifar10-lossless", "digits")
    for column, run_id, expected in (
        ("cifar10-mlp-100", "cifar10-lossless-mlp-a1", "cifar10-lossless-mlp-100"),
        ("cifar10-lossless-mlp", "digits-mlp-a1", "digits-mlp"),
        ("E1", "digits-mlp-a1", "E1"),
    ):
        assert _column({"column": column, "run_id": run_id}, names) == expected


def test_a_run_with_the_same_short_hash_is_another_run():
    """Its evidence is refused, since it has another setting."""
    made = make_plan("full")
    plan, evidence = typed(made, make_evidence(made, {("fedavg", A): [88.0]}))
    ((run_id, seeds),) = evidence.items()
    run, receipt = plan.runs[run_id], seeds[8]
    _require_same(receipt, run, Path("seed8.json"))
    other = replace(run, config=run.config | {"client_lr": 0.5})
    with pytest.raises(UserError, match=r"seed8\.json: client_lr = 0\.08, the table asks for 0\.5; "):
        _require_same(receipt, other, Path("seed8.json"))


def test_damaged_evidence_is_one_line(tmp_path):
    """A receipt with another seed, without the table's metric, with another number or without a digest is named in one line
    that says what to do."""
    make_report(tmp_path)
    path = next(tmp_path.glob("reports/demo/fedlaw/evidence/*/seed8.json"))
    whole = json.loads(path.read_text())
    for broken, said in (
        ({**whole, "seed": 9}, "seed = 9 where 8 belongs"),
        (seal(whole | {"curves": {"round": [0]}}), "no 'test_accuracy'"),
        ({**whole, "summary": whole["summary"] | {"best_test_accuracy": 98.0}}, "digest is not that of its content"),
        ({key: value for key, value in whole.items() if key != "digest"}, "it has no digest"),
        ({key: value for key, value in whole.items() if key != "files"}, "key 'files' is missing"),
        (seal(whole | {"config": whole["config"] | {"client_lr": 0.5}}), "its settings are not those of run_id"),
    ):
        write_json(path, broken)
        with pytest.raises(UserError, match=said) as caught:
            render(Path("results/plans/demo/fedlaw/table3.json"), Store((path.parent.parent,)), Path("x"))
        assert str(path) in str(caught.value)
        assert "delete it and run the same command again" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_plan_with_an_edited_setting_is_one_line(tmp_path):
    """The line names the plan and not the evidence, which is sound."""
    make_report(tmp_path)
    path = Path("results/plans/demo/fedlaw/table3.json")
    path.write_text(path.read_text().replace('"client_lr": 0.08', '"client_lr": 0.8', 1))
    with pytest.raises(UserError, match=r"table3\.json: its settings are not those of run_id = .*; delete it and run"):
        render(path, Store((Path("reports/demo/fedlaw/evidence"),)), Path("x"))


def test_a_table_of_another_schema_is_one_line(tmp_path):
    """A report of older code, the page of a paper, and a file that is no report are refused in one line."""
    path = make_report(tmp_path)["json"]
    whole = read_json(path)
    assert load_table(path) == whole
    headers = [whole["header"] | {"schema": 2}, {"schema": whole["header"]["schema"], "paper": "fedlaw"}, None]
    for content in (*(whole | {"header": header} for header in headers), whole["cells"]):
        write_json(path, content)
        with pytest.raises(UserError, match=r"table3\.json: not the report of a table of schema 3; delete it") as caught:
            load_table(path)
        assert "\n" not in str(caught.value)


def test_summary_holds_only_the_given_tables(tmp_path):
    """The summary has means by scale, paper, table, column and row. Earlier contents are gone. Cells without a mean are left
    out."""
    report = load_table(make_report(tmp_path)["json"])
    path = tmp_path / "results" / "summary.json"
    write_json(path, {"full": {"stale": 1}})
    write_summary([report], [], path)
    cells = {A: {"fedavg": 89.5, "fedlaw": 88.2, "ours": 87.1}, B: {"fedlaw": 86.25}}
    assert json.loads(path.read_text()) == {"demo": {"fedlaw": {"table3": cells | {"over_seeds": "8, 9, 10"}}}}


def test_summary_calls_columns_after_the_data_that_were_used(tmp_path):
    """At scale demo digits replace FashionMNIST. A column that is not named after data keeps its name."""
    report = load_table(make_report(tmp_path)["json"])
    names = {A: "fashion_mnist-mlp-100", B: "alpha0.1-top1"}
    report["cells"] = [cell | {"column": names[cell["column"]]} for cell in report["cells"]]
    path = write_summary([report], ["mnist", "fashion_mnist", "digits"], tmp_path / "summary.json")
    assert json.loads(path.read_text())["demo"]["fedlaw"]["table3"].keys() == {"digits-mlp-100", "alpha0.1-top1", "over_seeds"}


def test_means_of_methods_for_experiments(tmp_path):
    """Each method has one number, its mean over the table's columns, and none if a run is missing. Each metric has its own
    number, and jumps are no accuracies.

    `mean_of` names table, scale and seeds. Further tables come under their own names and rename nothing."""
    report = load_table(make_report(tmp_path)["json"])
    path = tmp_path / "results" / "means.json"
    write_means([report], path)
    one = {"mean_of": "table3 demo, seeds 8, 9, 10", "fedlaw": 87.225, "ours": 87.1}
    assert json.loads(path.read_text()) == one
    metrics = {A: "test_accuracy", B: "test_top3_accuracy"}
    cells = [cell | {"metric": metrics[cell["column"]]} for cell in report["cells"]]
    other = {"header": report["header"] | {"paper": "fedgh", "table": "table2", "seeds": [8, 11]}, "cells": cells}
    write_means([report, other], path)
    assert json.loads(path.read_text()) == one | {
        "fedgh/table2": {
            "mean_of": "fedgh/table2 demo, seeds 8, 11",
            "fedavg": {"test_accuracy": 89.5},
            "fedlaw": {"test_accuracy": 88.2, "test_top3_accuracy": 86.25},
            "ours": {"test_accuracy": 87.1},
        },
    }
    for cell in report["cells"]:
        cell["read"] = "jumps(part=0.5)" if cell["column"] == B and cell["read"] else cell["read"]
    write_means([report], path)
    assert json.loads(path.read_text())["fedlaw"] == {"test_accuracy": 88.2, "test_accuracy, jumps": 86.25}
