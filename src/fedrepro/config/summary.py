"""papers/<paper>/summary.yaml: what a person reads of a paper in half a minute. Its sentences are those of `config.prose`."""

from pathlib import Path

from pydantic import Field, field_validator

from fedrepro.config import prose
from fedrepro.config.schema import Strict, check
from fedrepro.files import read_yaml


class Answers(Strict):
    """What the evidence of one scale says: what does not hold, what it cannot tell, what holds, and what controls of ours say
    that the paper has no word on. Pages keep this order."""

    fails: list[str] = Field([])
    open: list[str] = Field([])
    holds: list[str] = Field([])
    controls: list[str] = Field([])

    _prose = field_validator("fails", "open", "holds", "controls")(prose.checked)


class Summary(Strict):
    """`missing`: what could not be obtained; `answers` by scale, of those that are published."""

    proposes: str
    missing: str
    answers: dict[str, Answers] = Field({})

    @field_validator("proposes", "missing")
    @classmethod
    def _prose(cls, text: str) -> str:
        return prose.checked([text])[0]


def load_summary(root: Path, paper: str) -> Summary | None:
    """None where the paper has no such file. UserError for a mistake in it."""
    path = Path(root) / "papers" / paper / "summary.yaml"
    return check(Summary, read_yaml(path), str(path)) if path.exists() else None
