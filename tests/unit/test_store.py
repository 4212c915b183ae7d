"""Where results are found: published before local, whatever the folders above the project are called."""

from pathlib import Path

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
