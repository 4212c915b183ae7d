"""Code fingerprints of an edited copy of the package: which edits change one, and which do not."""

import ast
import shutil
import sys
from pathlib import Path

import pytest
from bare import python

from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.engine import fingerprints, receipts, sources
from fedrepro.engine.bindings import bindings
from fedrepro.engine.fingerprints import ENGINE, KERNELS, Changed, Code
from fedrepro.files import write_json

ROOT = Path(__file__).parents[3]
GH = "methods/transform/gh.py"
OTHER = f"{fingerprints.RULE}other"
RESNETS = ("8", "18", "20", "20_gn", "56", "110")
LAWS = ("attentive_law", "early_stopped_law", "fedlaw", "fedlaw_only", "fedlaw_quad", "fedlaw_swa", "law_swa")
CONFIG = {
    "method": "local_sgd+gh(against=original)+mean(weighting=size)+server_sgd(server_lr=1.0)+mean_buffers(weighting=size)",
    "model": "mlp",
    "partition": "dirichlet_per_class(alpha=0.1)",
}


@pytest.fixture(scope="module")
def read_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the cache of its parsed files, so that each test parses only edited files again."""
    copy = tmp_path_factory.mktemp("read") / "fedrepro"
    shutil.copytree(fingerprints.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    all_of(copy)
    return copy


@pytest.fixture
def package(read_once: Path, tmp_path: Path) -> Path:
    """A copy that the test may edit."""
    return shutil.copytree(read_once, tmp_path / "fedrepro")


def all_of(package: Path) -> dict[str, str | None]:
    """Every fingerprint of the package."""
    code = Code(package)
    return {name: code.of(name) for name in (ENGINE, *code.things)}


def moved(package: Path, before: dict[str, str | None]) -> set[str]:
    """Names whose fingerprint differs from `before` or is gone."""
    now = all_of(package)
    return {name for name in before | now if before.get(name) != now.get(name)}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, f"{path}: no {old!r}"
    path.write_text(text.replace(old, new))


def test_every_part_scheme_and_model_has_one_of_its_own_code(package: Path) -> None:
    """There are as many fingerprints as the registries have names. They differ if the modules differ, and the copy's equal the
    package's."""
    from fedrepro.data.partition import SCHEMES
    from fedrepro.methods.parts import PARTS
    from fedrepro.models.names import MODELS

    found = all_of(package)
    assert found == all_of(fingerprints.PACKAGE)
    kinds = {"part": PARTS.names(), "partition": SCHEMES.names(), "model": MODELS}
    assert found.keys() == {ENGINE, KERNELS, *(f"{kind} {name}" for kind, names in kinds.items() for name in names)}
    assert len({*found.values()}) == len(found)
    assert fingerprints.today(CONFIG, "cuda").keys() - fingerprints.today(CONFIG).keys() == {KERNELS}
    assert fingerprints.today(CONFIG).keys() == {
        *(f"part {name}" for name in ("local_sgd", "gh", "mean", "server_sgd", "mean_buffers")),
        "partition dirichlet_per_class",
        "model mlp",
        ENGINE,
    }


def test_words_layout_and_names_of_local_variables_change_nothing(package: Path) -> None:
    """Every file that computes loses its comments, docstrings and layout, its imports are reversed, and local variables get
    other names. No fingerprint changes."""
    before, folders = all_of(package), ("data", "engine", "methods", "models")
    for path in [*package.glob("*.py"), *(path for folder in folders for path in (package / folder).rglob("*.py"))]:
        tree = ast.parse(path.read_text())
        for node, name in bindings(tree):
            for field, value in ast.iter_fields(node):
                if value == name:
                    setattr(node, field, f"{name}_too")
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                node.names.reverse()
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(node):
                node.body[0] = ast.Expr(ast.Constant("Other words.")) if len(node.body) > 1 else ast.Pass()
        path.write_text(f"# A comment.\n\n{ast.unparse(ast.fix_missing_locations(tree))}\n")
    assert "_too" in (package / "engine/loop.py").read_text()
    assert moved(package, before) == set()


@pytest.mark.parametrize(
    ("file", "users"),
    [
        ("methods/pairs.py", {"part attention"}),
        ("methods/adam.py", {"part adaptive_gws", *(f"part {name}" for name in LAWS)}),
        ("methods/aggregate/attentive_law.py", {"part attentive_law", "part early_stopped_law"}),
        ("methods/adaptive.py", {"part fedadagrad", "part fedadam", "part fedyogi"}),
        ("data/partition/hierarchy.py", {"partition pachinko"}),
        (
            "models/batch_norm.py",
            {f"model {name}" for name in ("fedima_resnet18", "wrn56_4", "densenet121", *(f"resnet{n}" for n in RESNETS))},
        ),
        ("methods/parts.py", {ENGINE}),
        ("tree.py", {ENGINE}),
        ("engine/local.py", {ENGINE}),
        ("models/gpu.py", {KERNELS}),
        ("models/gpu_kernels.py", {KERNELS}),
        ("console.py", set()),
        ("cli/runs.py", set()),
    ],
)
def test_an_edit_of_what_is_shared_marks_its_users(file: str, users: set[str], package: Path) -> None:
    """An edited helper marks the parts that import it, also through other helpers. An edit of code that all share marks the
    engine. An edit of code that only prints marks nothing."""
    before = all_of(package)
    with (package / file).open("a") as stream:
        stream.write("\nADDED = 1\n")
    found = moved(package, before)
    if file == "methods/adam.py":  # the students of feddf and fedbe use it too
        users = users | {"part feddf", "part fedbe", "part server_ft"}
    assert found == users


def test_what_runs_on_a_gpu_alone_is_none_of_the_engine(package: Path) -> None:
    """An edit below `if gpu.takes(...):` does not change the engine's fingerprint. With an `else` it does."""
    before, path = all_of(package), package / "models/ops.py"
    edit(path, " and stride == 1:", ":")
    assert moved(package, before) == {KERNELS}
    before = all_of(package)
    edit(path, "        return y if bias is None else y + _per_channel(bias)\n", "        return y\n")
    assert moved(package, before) == {KERNELS}
    edit(path, "        return y\n    clients", "        return y\n    else:\n        size = 1\n    clients")
    assert moved(package, before) == {ENGINE, KERNELS}


def test_new_files_need_no_list(package: Path) -> None:
    """A part, a scheme, and a model with its line in the list: each gets a fingerprint, and no other changes."""
    before = all_of(package)
    shutil.copy(package / GH, package / "methods/transform/other.py")
    edit(package / "methods/transform/other.py", '"gh")', '"other")')
    shutil.copy(package / "data/partition/iid.py", package / "data/partition/deal.py")
    edit(package / "data/partition/deal.py", '"iid"', '"deal"')
    names, wide = package / "models/names.py", '    "wide": Architecture("mlp", _GREY, {"hidden": (900,)}),\n'
    edit(names, '    "mlp": Architecture(', f'{wide}    "mlp": Architecture(')
    assert moved(package, before) == {"part other", "partition deal", "model wide"}
    before = all_of(package)
    edit(names, "(900,)", "(901,)")
    assert moved(package, before) == {"model wide"}


def test_a_file_may_move_and_a_part_may_not_go(package: Path) -> None:
    """A part that moves to another file keeps its fingerprint. A renamed or deleted part counts as changed."""
    code = Code(package).today(CONFIG)
    (package / GH).rename(package / "methods/transform/harmonise.py")
    assert not Code(package).changed(code, CONFIG)
    edit(package / "methods/transform/harmonise.py", '"gh")', '"harmonise")')
    assert Code(package).changed(code, CONFIG) == Changed(retrain=("part gh",))
    (package / "methods/transform/harmonise.py").unlink()
    assert Code(package).changed(code, CONFIG).names == ("part gh",)
    (package / "models/mlp.py").unlink()
    assert Code(package).changed(code, CONFIG) == Changed(("part gh",), ("model mlp",))


def test_what_retrains_and_what_marks(package: Path) -> None:
    """Changed parts and schemes make a result stale; changed engines and models only mark it. Without a record, or with
    one of an earlier rule, nothing is reported."""
    code = Code(package).today(CONFIG)
    for file in ("data/partition/dirichlet_per_class.py", "engine/loop.py", "models/mlp.py"):
        with (package / file).open("a") as stream:
            stream.write("\nADDED = 1\n")
    expected = Changed(retrain=("partition dirichlet_per_class",), mark=("engine", "model mlp"))
    assert Code(package).changed(code, CONFIG) == expected
    assert not Code(package).changed(None, CONFIG)
    assert not Code(package).changed({}, CONFIG)
    assert not Code(package).changed(dict.fromkeys(code, "66c0e7d22b8b"), CONFIG), "of the rule before"
    assert fingerprints.apart([code, None, code, dict.fromkeys(code, "66c0e7d22b8b")]) == ()
    assert fingerprints.apart([code, Code(package).today(CONFIG)]) == ("partition dirichlet_per_class",)


def test_a_broken_file_has_one_too(package: Path) -> None:
    """A file with a syntax error still gets a fingerprint, so `fedrepro runs` does not crash. The training reports the
    error."""
    before = all_of(package)
    (package / GH).write_text("def :")
    assert moved(package, before) == {"part gh"}


def test_relative_imports_are_followed(package: Path) -> None:
    """Imports are followed from a module and from the package of a slot."""
    edit(package / "methods/aggregate/attention.py", "from fedrepro.methods import pairs", "from .. import pairs")
    before = all_of(package)
    with (package / "methods/pairs.py").open("a") as stream:
        stream.write("\nADDED = 1\n")
    assert moved(package, before) == {"part attention"}


def test_all_of_them_without_torch() -> None:
    """In a new process the files are read and not imported."""
    code = "import sys; from fedrepro.engine import fingerprints, receipts; fingerprints.load(); print(*sys.modules)"
    modules = python(code).split()
    assert "fedrepro.engine.fingerprints" in modules
    assert not {"torch", "numpy"} & {*modules}
    assert not [name for name in modules if name.startswith("fedrepro.methods.")]


def test_the_code_of_a_record_is_read_without_the_rest(tmp_path: Path) -> None:
    """The reader finds the code fingerprints if they are longer than a block, and if the rest of the file is damaged. Without a
    record the result is None, and with a damaged one."""
    code = {f"part {number}": "0" * 12 for number in range(500)}
    path = write_json(tmp_path / "seed8.json", {"config": {}, "code": code, "curves": [1.0] * 9})
    assert receipts.code_of(path) == code
    path.write_text(path.read_text().replace("]", "garbage"))
    assert receipts.code_of(path) == code
    assert receipts.code_of(write_json(tmp_path / "old.json", {"config": {}, "curves": [1.0] * 9})) is None
    for damaged in (b'{"part a', b'{"part \xff": "2:0"}}', b"5}", b"[1]}", b'{"engine": 5}}'):
        (tmp_path / "damaged.json").write_bytes(b'{\n "code": ' + damaged)
        assert receipts.code_of(tmp_path / "damaged.json") is None


def test_a_seed_is_fresh_when_folder_and_receipt_are(tmp_path: Path) -> None:
    """Cases: missing, today's code, other code of a part, other code of the engine, unknown code, and a new folder beside an
    old receipt. The same files as published evidence are only marked."""
    receipt = receipts.receipt_path(tmp_path, "run", 8)
    manifest, today = receipt.with_suffix("") / "manifest.json", fingerprints.today(CONFIG)
    fresh = lambda: receipts.fresh(tmp_path, "run", 8, CONFIG)  # noqa: E731
    write = lambda path, **other: write_json(path, {"code": today | other, "files": {"metrics.parquet": "a"}})  # noqa: E731
    assert not fresh()
    write(receipt)
    assert fresh()
    write(receipt, engine=OTHER)
    assert fresh()
    assert receipts.changed(tmp_path, "run", 8, CONFIG) == Changed(mark=("engine",))
    write(receipt, **{"part gh": OTHER})
    assert not fresh()
    assert receipts.existing(tmp_path, "run", 8, CONFIG) is None
    write(manifest)
    assert not fresh()
    assert not receipts.changed(tmp_path, "run", 8, CONFIG)
    write(receipt)
    assert fresh()
    write_json(receipt, {"files": {}})
    manifest.unlink()
    assert fresh()
    write(receipt, **{"part gh": OTHER})
    write(tmp_path / "reports/full/fedgh/evidence/run/seed8.json", **{"part gh": f"{OTHER}2"})
    assert receipts.changed(tmp_path, "run", 8, CONFIG) == Changed(mark=("part gh",))
    assert fresh()


def test_every_run_of_the_project_has_a_fingerprint_of_each_of_its_parts() -> None:
    """Plans name parts as the registry does, so no part is left out because it was not found."""
    made = plan(load_project(ROOT), "fedgh", "table2", "full")
    for run in made.runs.values():
        names = {call.name for call in run.calls}
        code = fingerprints.today(run.config)
        assert len(code) == len(names) + 3, run.run_id


def test_what_was_read_is_kept_beside_the_bytecode(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second process parses nothing, nor does a copy. An edited file is parsed again. A broken cache file or a read-only
    folder changes no fingerprint."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    parsed: list[str] = []
    parse = sources._parsed
    monkeypatch.setattr(sources, "_parsed", lambda path, content: parsed.append(path.name) or parse(path, content))

    def afresh(package: Path = package) -> dict[str, str | None]:
        """The fingerprints as a new process would find them."""
        parsed.clear()
        sources._read.cache_clear()
        return all_of(package)

    for folder in [*package.rglob("__pycache__")]:
        shutil.rmtree(folder)
    first = afresh()
    assert len(parsed) > 100
    assert afresh() == first == all_of(fingerprints.PACKAGE)
    assert parsed == []
    assert afresh(shutil.copytree(package, package.parent / "copy/fedrepro")) == first
    assert parsed == []

    (package / GH).write_text((package / GH).read_text() + "\nNEW = 1\n")
    assert moved(package, first) == {"part gh"}

    kept = next((package / "engine").glob("__pycache__/loop.*.parsed.json"))
    kept.write_text("{")
    afresh()
    assert parsed == ["loop.py"]

    shutil.rmtree(package / "engine/__pycache__")
    (package / "engine/__pycache__").write_text("no folder")
    assert afresh()[ENGINE] == first[ENGINE]
    assert "loop.py" in parsed
