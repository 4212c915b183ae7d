"""Numbers that sentences mark as the paper's or as a table's own appear where the mark says."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from fedrepro.config import prose
from fedrepro.config.claims import load_claims
from fedrepro.config.project import load_project
from fedrepro.config.words import load_summary
from fedrepro.errors import UserError

ROOT = Path(__file__).parents[3]
PAPERS = sorted(path.parent.name for path in ROOT.glob("papers/*/paper.yaml"))


def without_remarks(value: object) -> object:
    if isinstance(value, dict):
        return {key: without_remarks(one) for key, one in value.items() if key != "remarks"}
    return [without_remarks(one) for one in value] if isinstance(value, list) else value


def own_text(path: Path) -> str:
    """The text of a table's file without its remarks, and of the table that it varies."""
    content = yaml.safe_load(path.read_text())
    other = content.get("variant_of")
    return str(without_remarks(content)) + (own_text(path.with_stem(other)) if other else "")


def sentences(paper: str) -> Iterator[tuple[str, str, str]]:
    """Yields (where, sentence, what its file states) for tables and the summary."""
    project, texts = load_project(ROOT), []
    for path in sorted((ROOT / "papers" / paper / "tables").glob("*.yaml")):
        table = project.table(paper, path.stem)
        texts.append(own_text(path))
        budgets = {scale: budget.remarks for scale, budget in table.budget.items()}
        for scale, remarks in [*table.remarks.items(), *budgets.items()]:
            yield from ((f"{path.name} {scale}", remark, texts[-1]) for remark in remarks)
    summary = load_summary(ROOT, paper)
    assert summary is not None
    lines = [summary.proposes, summary.missing]
    lines += [line for one in summary.answers.values() for line in (*one.fails, *one.open, *one.holds)]
    known = " ".join([*texts, (ROOT / "papers/changes.yaml").read_text()])
    yield from (("summary.yaml", line, known) for line in lines)


def contains(text: str, number: str) -> bool:
    return re.search(rf"(?<![\d.]){re.escape(number)}(?![\d]|\.\d)", text.replace(",", "")) is not None


@pytest.mark.parametrize("paper", PAPERS)
def test_marked_numbers_are_where_the_mark_says(paper: str) -> None:
    """`{given:x}` appears in the table's own file, or for a summary in any table's file or changes.yaml. `{paper:x}` appears
    among the printed numbers, the quoted words or the paper's settings."""
    folder = ROOT / "papers" / paper
    printed = " ".join(path.read_text() for path in folder.glob("published/*.csv"))
    stated = printed + (folder / "paper.yaml").read_text() + " ".join(own_text(path) for path in folder.glob("tables/*.yaml"))
    stated += " ".join(claim.says or "" for claim in load_claims(ROOT, paper))
    marked = 0
    for where, text, own in sentences(paper):
        for piece in prose.pieces(text, where):
            if isinstance(piece, prose.Field) and piece.form in (prose.PAPER, prose.GIVEN):
                known = own if piece.form == prose.GIVEN else stated
                for number in re.findall(r"\d+(?:\.\d+)?", piece.place.replace(",", "")):
                    assert contains(known, number), f"{where}: {{{piece.text}}}"
                    marked += 1
    assert marked


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"missing": "Its {code."}, "missing = 'Its {code.': in it: 'Its {code.': a brace has no partner"),
        (
            {"answers": {"full": {"in_brief": {"Why?": "By 3."}}}},
            "answers.full.in_brief.Why? = 'By 3.': in it: '3' is a number",
        ),
        (
            {"answers": {"full": {"fails": ["Fine.", "It is worse."]}}},
            "answers.full.fails: entry 2 = 'It is worse.': in it: 'wor",
        ),
    ],
)
def test_the_place_of_a_wrong_sentence_is_named(changed: dict, says: str, tmp_path: Path) -> None:
    path = tmp_path / "papers" / "some" / "summary.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump({"proposes": "Words.", "missing": "Nothing."} | changed))
    with pytest.raises(UserError, match=f"^{re.escape(f'{path}: {says}')}"):
        load_summary(tmp_path, "some")
