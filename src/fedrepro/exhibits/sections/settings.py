"""Methods and settings as they were run, with the source of every value; versions and input files."""

from fedrepro.console import some
from fedrepro.exhibits import provenance, settings
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.settings import Setting, ValueInPlaces
from fedrepro.exhibits.write import blocks as b


@section("table", at=100)
def what_was_run(table: Exhibit) -> list[b.Block]:
    """Methods with every argument, settings with their sources."""
    methods = []
    for label, specs in provenance.methods(table.plan):
        methods.append((label, b.Box(tuple(b.Text(spec, "code") for spec in specs) or ("not run",))))
    rows = tuple(
        (b.Text(setting.key, "code"), b.Box(tuple(_values(setting))), setting.source)
        for setting in settings.settings(table.plan)
    )
    blocks = (
        b.Paragraph("Methods, with every argument spelt out:"),
        b.Grid("Methods as run", b.heads("method", "as run"), tuple(methods)),
        b.Paragraph("Settings, and where each value comes from:"),
        b.Grid("Settings and their sources", b.heads("setting", "value", "source"), rows),
    )
    return [b.Section("What was run", blocks, folded=True, note="methods and settings, with the source of every value")]


def _values(setting: Setting) -> list[str]:
    """Lists each value with the places where it holds."""
    values = sorted(setting.values, key=lambda value: len(value.where), reverse=True)
    # The commonest value needs no list of places: it holds wherever nothing else is said.
    return [_value(value, elsewhere=place == 0 and len(value.where) > 6) for place, value in enumerate(values)]


def _value(value: ValueInPlaces, *, elsewhere: bool) -> str:
    if not value.where:
        return value.value
    return f"{value.value}: {'everywhere else' if elsewhere else '; '.join(value.where)}"


@section("table", at=140)
def provenance_of_a_table(table: Exhibit) -> list[b.Block]:
    """The versions of libraries, the commits, and every file that was read."""
    versions = provenance.page_versions(table.evidence) | {"commit": tuple(provenance.commits(table.evidence))}
    blocks: list[b.Block] = [b.Pairs(tuple((name, values or ("no run yet",)) for name, values in versions.items()))]
    files = provenance.input_files(table.plan, table.evidence)
    if files:
        rows = tuple(
            (kind, b.Text(id, "code"), ", ".join(map(str, seeds)), b.Text(sha256, "code")) for kind, id, sha256, seeds in files
        )
        blocks.append(b.Grid("Input files", b.heads("kind", "identity", "seeds", "sha256"), rows))
    note = f"versions, and {some(len(files), 'input file')} by sha256"
    return [b.Section("Provenance", tuple(blocks), folded=True, note=note)]
