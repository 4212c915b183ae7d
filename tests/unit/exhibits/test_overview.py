"""The page on all papers: counts, sentences filled from the evidence with failures first, and the claims."""

import re
from pathlib import Path

import pytest
from small_table import make_plan, write_evidence

from fedrepro.config.claims import Difference
from fedrepro.config.words import Answers, Summary, Words
from fedrepro.errors import UserError
from fedrepro.exhibits.render import render_overview, render_page
from fedrepro.files import write_json
from fedrepro.store import Store

A, B = "mlp-a100", "mlp-a01"
VALUES = {("fedavg", A): [89.0, 89.5, 90.6], ("fedlaw", A): [88.0, 88.5, 88.6], ("fedlaw", B): [86.0, 86.2, 87.0]}
CLAIM = {"id": "K1", "text": "Ahead.", "says": "FedLAW is ahead", "where": "Table 3", "kind": "difference", "table": "table3"}
CLAIM |= {"pairs": {"fedlaw": "fedavg"}, "side": "ahead"}
FULL = Answers(
    fails=["FedLAW is behind {holds:gain:table3/fedlaw-fedavg/mlp-a100 < 0} FedAvg, {gain:table3/fedlaw-fedavg/mlp-a100}."],
    open=["K1 is {verdict:K1}."],
    holds=["It ends at {mean:table3/fedlaw/mlp-a01}.", "FedAvg ends at {mean:table3/fedavg/mlp-a01}."],
)


def page(scale: str, summary: Summary, seeds: int = 3, paper: str = "fedlaw") -> Path:
    """Writes the paper's page at a scale. Returns the page's JSON."""
    folder, plan = Path("reports", scale, paper), make_plan(scale, paper=paper, paper_name=paper.replace("fedlaw", "FedLAW"))
    write_evidence(folder / "evidence", plan, {place: values[:seeds] for place, values in VALUES.items()})
    path = write_json(Path("results/plans", scale, paper, "table3.json"), plan)
    claims = [
        Difference.model_validate(CLAIM | {"columns": [A]}),
        Difference.model_validate(CLAIM | {"id": "K2", "columns": [B]}),  # FedAvg has not run in column B
    ]
    return render_page([path], Store((folder / "evidence",)), folder, Words(claims, summary, [], 96))[2]


@pytest.fixture(autouse=True)
def in_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_what_a_person_reads_in_half_a_minute() -> None:
    """The order is: what the paper proposes, how much was re-run, what fails, what is open, what holds, what is missing. A
    sentence whose runs are missing is left out. Scale short follows full and judges nothing."""
    short = Answers(open=["One seed says nothing: {mean:table3/fedlaw/mlp-a100}."])
    summary = Summary(proposes="Learnt weights.", missing="A GPU.", answers={"full": FULL, "short": short})
    made = render_overview([page("short", summary, seeds=1), page("full", summary)], Path("reports"))
    assert [path.as_posix() for path in made] == ["reports/README.md", "reports/index.html"]
    text = made[0].read_text()
    lines = re.findall(r"^- (.*)", text, re.MULTILINE)
    assert lines == [
        "**Proposes:** Learnt weights.",
        "**Re-run:** 3 of its 96 printed numbers at full scale (3 %). 3 of its 96 printed numbers at scale short, with fewer "
        "rounds or seeds and in part other data or networks; none of these is comparable.",
        "**Does not hold:** FedLAW is behind FedAvg, −1.33.",
        "**Undecided:** K1 is inconclusive.",
        "**Holds:** It ends at 86.40.",
        "**Seen at scale short:** One seed says nothing: 88.00.",
        "**What we did not have:** A GPU.",
        "**Pages:** [scale full](full/fedlaw/index.md), [scale short](short/fedlaw/index.md)",
    ]
    for ending in ("md", "html"):
        assert Path(f"reports/full/fedlaw/index.{ending}").read_text().count('id="K1"') == 1


def test_short_answers_stand_before_the_tables_and_the_rest_below() -> None:
    """Of a page's questions those whose numbers are there are answered at its top and on the page of all papers. An answer that
    holds no longer stops the page."""
    asked = {"Is it ahead?": "No, {gain:table3/fedlaw-fedavg/mlp-a100}.", "Where?": "{mean:table3/fedavg/mlp-a01}"}
    brief = FULL.model_copy(update={"in_brief": asked})
    summary = Summary(proposes="Weights.", missing="Nothing.", answers={"full": brief})
    overview = render_overview([page("full", summary)], Path("reports"))[0].read_text()
    assert "**Is it ahead?** No, −1.33." in overview
    assert "Undecided" not in overview
    top, below = Path("reports/full/fedlaw/index.md").read_text().split("## The answers at length")
    assert "> **Is it ahead?** No, −1.33." in top
    assert "Where?" not in top
    assert "- **Does not hold:** FedLAW is behind FedAvg, −1.33." in below
    below_full = summary.model_copy(update={"answers": {"short": Answers(in_brief={"Is it ahead?": "One seed says nothing."})}})
    text = render_overview([page("short", below_full, seeds=1)], Path("reports"))[0].read_text()
    assert "- **At scale short: is it ahead?** One seed says nothing." in text
    brief.in_brief["Is it ahead?"] = "Yes {holds:gain:table3/fedlaw-fedavg/mlp-a100 > 0}."
    with pytest.raises(
        UserError, match=r"^papers/fedlaw/summary.yaml: full: in_brief: Is it ahead\?\[0\]: 'gain.*' does not hold"
    ):
        page("full", summary)


def test_numbers_and_claims_are_counted_and_claims_lead_to_their_pages() -> None:
    """A judged claim has its text and verdict. Claims without a verdict are listed by reason. Below scale full nothing
    counts."""
    summary = Summary(proposes="Learnt weights.", missing="A GPU.", answers={})
    full, short = page("full", summary), page("short", summary, seeds=1)
    text = render_overview([short, full], Path("reports"))[0].read_text()
    counted = "3 of 96 | 3: 3 reproduced | 1 of 2: 1 inconclusive"
    assert f"| [FedLAW](full/fedlaw/index.md) | {counted} |" in text
    assert "| [K1](full/fedlaw/index.md#K1): Ahead. | ? inconclusive |" in text
    assert "| paper | – not run |\n| --- | --- |\n| FedLAW | [K2](full/fedlaw/index.md#K2) |" in text
    text = render_overview([short], Path("reports"))[0].read_text()
    assert "| [FedLAW](short/fedlaw/index.md) | 0 of 96 | none | none of 2 |" in text
    assert "Claims that were judged" not in text


def test_several_papers_have_a_line_together() -> None:
    """It has the sums. A claim of whichever paper leads to its page, and the verdicts that do not hold come first."""
    summary = Summary(proposes="Learnt weights.", missing="A GPU.", answers={})
    text = render_overview([page("full", summary), page("full", summary, paper="other")], Path("reports"))[0].read_text()
    counted = "3 of 96 | 3: 3 reproduced | 1 of 2: 1 inconclusive"
    assert f"| [other](full/other/index.md) | {counted} |" in text
    assert "| together | 6 of 192 | 6: 6 reproduced | 2 of 4: 2 inconclusive |" in text


def test_what_has_no_value_is_said_beside_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two printed numbers have a measured number. A third has a diverged seed."""
    monkeypatch.setitem(VALUES, ("fedlaw", A), [88.0, None, 88.6])
    summary = Summary(proposes="Weights.", missing="Nothing.", answers={})
    text = render_overview([page("full", summary)], Path("reports"))[0].read_text()
    assert "**Re-run:** 2 of its 96 printed numbers at full scale (2 %; 1 more has a seed without a value)." in text


def test_a_sentence_that_holds_no_longer_stops_the_page() -> None:
    """One line names the file, the scale and the sentence."""
    wrong = Answers(fails=["FedLAW is ahead {holds:gain:table3/fedlaw-fedavg/mlp-a100 > 0}."])
    with pytest.raises(UserError, match=r"^papers/fedlaw/summary.yaml: full: fails\[0\]: 'gain.*' does not hold"):
        page("full", Summary(proposes="Weights.", missing="Nothing.", answers={"full": wrong}))
