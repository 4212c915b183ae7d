"""A table for machines and authors: JSON records, CSV lines and LaTeX. JSON and CSV have the page's numbers unrounded."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from html_page import Page
from small_table import SOME, exhibit, make_evidence, make_plan

from fedrepro.exhibits import latex, pages, records
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.write import html

A, B = "mlp-a100", "mlp-a01"


def table(scale: str = "full", accuracies: Any = SOME, **changes: Any) -> Exhibit:
    plan = make_plan(scale, **changes)
    return exhibit(plan, make_evidence(plan, accuracies))


def lines(of: Exhibit) -> dict[tuple[str, str], dict[str, str]]:
    """The lines of the CSV by row and column."""
    return {(one["row"], one["column"]): one for one in csv.DictReader(io.StringIO(records.table_csv(of)))}


@pytest.mark.parametrize("scale", ["demo", "full"])
def test_every_record_says_the_numbers_of_the_page(scale: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every seed, mean, deviation, number of seeds, printed number, difference and margin agrees with the page at two
    decimals."""
    monkeypatch.setattr("fedrepro.exhibits.write.html.inline", lambda *_: "")  # draw no pictures
    of = table(scale)
    page, document = Page(html.write(pages.table_page(of), tmp_path)), json.loads(records.table_text(of))
    number = lambda value, sign="": "–" if value is None else f"{value:{sign}.2f}".replace("-", "−")  # noqa: E731
    grid = {row[0]: row[1:] for row in reversed(page.rows) if len(row) == 1 + len(of.plan.columns)}
    assert {(one["row"], one["column"]) for one in document["cells"]} == {(c.row.key, c.column.key) for c in of.cells}
    for one in document["cells"]:
        shown = grid[one["method"]][[A, B].index(one["column"])]
        if not one["per_seed"]:
            assert (shown, one["mean"], one["status"]) == ("not run", None, "not run")
            continue
        values = {**dict.fromkeys(("8", "9", "10"), "–"), **{seed: number(v) for seed, v in one["per_seed"].items()}}
        texts = ["diverged" if one["per_seed"].get(seed, 0.0) is None else text for seed, text in values.items()]
        assert [one["method"], one["setting"], *texts] in [row[:5] for row in page.rows]
        known = [value for value in one["per_seed"].values() if value is not None]
        lost = f" at {len(one['per_seed']) - len(known)} of {len(one['per_seed'])} seeds" if known else ""
        said = (
            f"diverged{lost}"
            if one["mean"] is None
            else f"{number(one['mean'])} ± {number(one['std'])} ({len(one['per_seed'])})"
        )
        said += "" if one["printed"] is None else f"paper {number(one['printed'])}"
        assert shown.startswith(said), (shown, said)
        compared = scale == "full" and one["printed"] is not None
        assert bool(re.search("[✓≈?✗]", shown)) == compared  # below full scale there is no verdict and no signed number
        assert bool(re.search(r"[+−]\d", shown)) == (one["difference"] is not None) == (compared and one["mean"] is not None)
        assert one["difference"] is None or number(one["difference"], "+") in shown
        assert one["margin"] is None or f"margin {number(one['margin'])}" in shown
    assert document["header"]["counts"] == of.counts
    assert {(one["run_id"], one["seed"]) for one in document["runs"]} == {(one.run_id, one.seed) for one in of.receipts}


def test_a_table_as_csv() -> None:
    """One line for each cell: names, printed number, mean and deviation by hand, and each seed. Missing values are empty. At
    full scale 89.5 is 0.21 above 89.29."""
    found = lines(table())
    assert len(found) == 6
    one = found["fedavg", A]
    assert (one["method"], one["setting"], one["dataset"]) == ("FedAvg", "FashionMNIST · MLP, α = 100", "digits")
    assert (one["metric"], one["unit"], one["printed"], one["mean"], one["std"]) == (
        *("test_accuracy", "percent"),
        *("89.29", "89.5", "0.5"),
    )
    assert (one["difference"], one["status"]) == ("0.21", "reproduced")
    assert [one[f"seed{seed}"] for seed in (8, 9, 10)] == ["89", "89.5", "90"]
    diverged = found["fedavg", B]
    assert [diverged[key] for key in ("mean", "std", "difference", "seed8", "seed9", "seed10")] == ["", "", "", "85", "", "86"]
    assert [found["fedlaw", B][f"seed{seed}"] for seed in (8, 9, 10)] == ["86", "86.5", ""]
    assert (found["ours", B]["run_id"], found["ours", B]["status"]) == ("", "not run")
    assert {line["difference"] for line in lines(table("demo")).values()} == {""}


def test_a_table_as_latex() -> None:
    """The LaTeX has the printed table's grid: groups above, measured numbers with deviation, the best of a column bold, printed
    numbers below. A row of ours has one line, since it has no printed numbers."""
    text = latex.write(table())
    assert text.splitlines()[0].startswith("% FedLAW, Table 3, p. 8, scale full: ")
    assert text.partition("\n")[2].partition("\n")[2] == (
        r"""\begin{tabular}{lrr}
\toprule
& \multicolumn{2}{c}{FashionMNIST} \\
\cmidrule(lr){2-3}
method & MLP, $\alpha$ = 100 & MLP, $\alpha$ = 0.1 \\
\midrule
FedAvg & $\mathbf{89.50 \pm 0.50}$ & -- \\
 & \footnotesize (89.29) & \footnotesize (85.11) \\
FedLAW & $88.20 \pm 0.20$ & $\mathbf{86.25 \pm 0.35}$ \\
 & \footnotesize (88.51) & \footnotesize (86.30) \\
FedAvg + GH & $87.10 \pm 0.10$ & -- \\
\bottomrule
\end{tabular}
"""
    )


def test_latex_rounds_as_pages_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of 80.07 and 80.08 is 80.07499999999999 in floats and 80.08 on the page."""
    monkeypatch.setattr("fedrepro.exhibits.write.html.inline", lambda *_: "")
    of = table(accuracies={("fedavg", "mlp-a100"): [80.07, 80.08]}, seeds=[8, 9])
    (cell,) = (one for one in of.cells if one.mean is not None)
    assert f"{cell.mean:.2f}" == "80.07"
    assert "$80.08 \\pm 0.01$" in latex.write(of)
    assert ">80.08" in html.write(pages.table_page(of), tmp_path)


def test_a_negative_number_has_a_minus_in_latex() -> None:
    """A hyphen stands for it outside of mathematics."""
    plan = make_plan("full")
    plan["cells"][0]["printed"] = -2.25
    text = latex.write(exhibit(plan, make_evidence(plan, {("fedavg", A): [-1.5]})))
    assert "$-1.50$" in text
    assert "\\footnotesize ($-$2.25)" in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("50 % & more_of #1", r"50 \% \& more\_of \#1"),
        (r"{a}\b~c^d$", r"\{a\}\textbackslash{}b\textasciitilde{}c\textasciicircum{}d\$"),
        ("τ = −0.5 × 2 ± 1", r"$\tau$ = $-$0.5 $\times$ 2 $\pm$ 1"),
        ("[a] < σ | b", r"{[}a] \textless{} $\sigma$ \textbar{} b"),
    ],
)
def test_text_in_latex_is_escaped(text: str, said: str) -> None:
    assert latex.escape(text) == said


def test_latex_has_a_name_for_every_sign_of_the_papers_labels() -> None:
    """pdflatex stops at a Greek letter that is not escaped."""
    tables = Path(__file__).parents[3].glob("papers/*/tables/*.yaml")
    labels = [label for path in tables for label in re.findall(r"\b(?:label|group): *(.+)", path.read_text())]
    assert len(labels) > 500
    assert [label for label in labels if not latex.escape(label).isascii()] == []


def test_labels_of_a_table_are_escaped() -> None:
    """LaTeX escapes them, and the CSV quotes them."""
    plan = make_plan("full")
    plan["rows"][0]["label"] = 'a_1, "b" & 5 %'
    of = exhibit(plan, make_evidence(plan, SOME))
    assert r'a\_1, "b" \& 5 \% & $' in latex.write(of)
    assert lines(of)["fedavg", A]["method"] == 'a_1, "b" & 5 %'


def test_a_table_without_evidence() -> None:
    """Every cell is there without a measured number. Printed numbers stay."""
    of = table(accuracies={})
    found = lines(of)
    assert len(found) == 6
    assert {(one["mean"], one["status"], one["seed8"]) for one in found.values()} == {("", "not run", "")}
    assert found["fedavg", A]["printed"] == "89.29"
    text = latex.write(of)
    assert r"FedAvg & -- & -- \\" in text
    assert r" & \footnotesize (89.29) & \footnotesize (85.11) \\" in text
    document = json.loads(records.table_text(of))
    assert (document["runs"], document["inputs"]) == ([], [])
    assert {one["mean"] for one in document["cells"]} == {None}
