"""Where results are found: published before local, whatever the folders above the project are called."""

from pathlib import Path

from fedrepro.engine import measurements
from fedrepro.engine.measurements import Value
from fedrepro.files import write_json
from fedrepro.store import Store, is_published, seeds_in


def test_published_comes_first_and_full_before_short(tmp_path: Path) -> None:
    """The project is in a folder called evidence."""
    root = tmp_path / "evidence"
    local = write_json(root / "results/runs/mnist-a/seed8.json", {})
    assert Store.of(root).find("mnist-a", 8) == local
    assert Store.of(root).find("mnist-a", 9) is None
    assert not is_published(local)
    assert not is_published(root / "results/diagnostics/mnist-a/call/seed8.parquet")
    for scale in ("short", "full"):
        published = write_json(root / f"reports/{scale}/fedgh/evidence/mnist-a/seed8.json", {})
        assert Store.of(root).find("mnist-a", 8) == published
        assert is_published(published)
    assert is_published(published.parent / "call/seed8.parquet")


def test_a_copy_beside_a_seed_is_no_seed(tmp_path: Path) -> None:
    """A file manager's copy is not a seed. Seeds are in numerical order."""
    paths = {seed: write_json(tmp_path / f"seed{seed}.json", {}) for seed in (8, 10)}
    for name in ("seed8 copy.json", "seed.json", "seed-1.json"):
        write_json(tmp_path / name, {})
    assert [*seeds_in(tmp_path).items()] == [*paths.items()]


def test_what_was_measured_on_other_models_than_the_kept_ones_is_missing(tmp_path: Path) -> None:
    """A published copy counts, and so does a file without a list of kept models beside it."""
    path = measurements.measurements_path(tmp_path, "a", "call", 8)
    about = {"run_id": "a", "seed": 8, "diagnostic": "call", "reached": 4, "models": {"1": "x"}}
    measurements.write(path, about, [Value(1, "loss", 0.5)])
    assert Store.of(tmp_path).measured("a", "call", 8, [1]) == path
    index = measurements.model_index_path(tmp_path, "a", 8)
    for rounds, found in (({"1": "x", "2": "y"}, path), ({"1": "other"}, None), ({}, None)):
        write_json(index, {"rounds": rounds})
        assert Store.of(tmp_path).measured("a", "call", 8, [1]) == found
    copy = tmp_path / "reports/full/fedgh/evidence" / path.relative_to(tmp_path / "results/diagnostics")
    measurements.write(copy, about, [Value(1, "loss", 0.5)])
    assert Store.of(tmp_path).measured("a", "call", 8, [1]) == copy
