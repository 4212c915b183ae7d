"""A sweep as files that a person could have written: a protocol, a table with a cell for each combination, a figure.

They lie in sweeps/<name>/ and are read as a paper called sweep_<name>: planned, trained, reported and tracked like one. Pure.
"""

import re
from pathlib import Path
from typing import Any

from fedrepro.config.by_hand import Request, contents
from fedrepro.config.places import SWEEP, paper_folder
from fedrepro.config.project import Project
from fedrepro.errors import UserError
from fedrepro.files import canonical_hash
from fedrepro.methods.compose import expand
from fedrepro.registry import parse

TABLE, FIGURE = "table1", "figure1"
_LONGEST = 30  # letters of a name that is made from a sweep's content, without its hash


def files(project: Project, request: Request, name: str | None, command: str = "") -> tuple[str, dict[Path, str]]:
    """(what the sweep is called among papers, the content of its files). `name`: made from the content where it is None.

    UserError for what is unknown or out of range, and for a name that no folder of reports can have.
    """
    paper, table = contents(project, request)
    name = name or _name(request, canonical_hash([paper, table], 4))
    if not re.fullmatch(r"[a-z0-9_]+", name):
        raise UserError(f"--name {name}: take lower-case letters, digits and _")
    citation = {"name": f"Sweep {name}", "authors": "fedrepro", "venue": "sweep", "url": "", "title": _title(request)}
    swept = ", ".join(f"{key} = {', '.join(map(str, values))}" for key, values in request.over.items())
    table |= {"title": _title(request), "source": "all combinations"}
    figure = {
        "kind": "curves()",
        "title": _title(request),
        "source": "all combinations",
        "caption": f"Mean over seeds, with their range; {swept}." if swept else "Mean over seeds, with their range.",
        "of": TABLE,
    }
    folder = paper_folder(Path(), SWEEP + name)
    content_by_path = {"paper.yaml": paper | citation, f"tables/{TABLE}.yaml": table, f"figures/{FIGURE}.yaml": figure}
    return SWEEP + name, {folder / path: _yaml(content, command) for path, content in content_by_path.items()}


def _name(request: Request, ending: str) -> str:
    parts = [call.name for method in request.methods for call in expand(parse(method))] or ["fedavg"]
    words = [*dict.fromkeys(parts), *(key.rpartition(".")[2] for key in request.over)]
    return f"{re.sub(r'[^a-z0-9]+', '_', '_'.join(words))[:_LONGEST].strip('_')}_{ending}"


def _title(request: Request) -> str:
    swept = " and ".join(request.over)
    return f"{', '.join(request.methods)}" + (f" over {swept}" if swept else "")


def _yaml(content: dict[str, Any], command: str) -> str:
    import yaml

    class Plain(yaml.SafeDumper):
        """Writes a repeated value in full, where YAML would refer to the first."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    head = f"# Written by: {command}\n" if command else ""
    return head + yaml.dump(content, Dumper=Plain, sort_keys=False, allow_unicode=True, width=128)
