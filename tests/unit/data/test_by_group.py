"""The partition by groups, from the scheme to the artifact on disk."""

from pathlib import Path

import numpy as np
import pytest

from fedrepro.data import partition
from fedrepro.data.partition import Draw, draw
from fedrepro.data.partition.iid import Iid
from fedrepro.data.prepare import prepare
from fedrepro.data.registry import load_registry
from fedrepro.errors import UserError

from .conftest import REGISTRY

# 30 samples: group 0 has 10, group 1 has 12, group 2 has 8. Labels alternate.
GROUPS = np.random.default_rng(3).permutation(np.repeat([0, 1, 2], [10, 12, 8]))
LABELS = np.arange(30) % 2


def owners(parts: list[np.ndarray]) -> list[int]:
    """The only group of each part."""
    found = [np.unique(GROUPS[part]) for part in parts]
    assert all(len(one) == 1 for one in found)
    return [int(one[0]) for one in found]


@pytest.mark.parametrize("scheme", ["by_group", "by_group(within='shards(per_client=1)')"])
@pytest.mark.parametrize("each", [1, 2])
def test_clients_have_one_group_each(scheme: str, each: int) -> None:
    """Every group has the same number of clients, assigned at random. One client per group is the natural partition."""
    drawn = [draw(scheme, LABELS, 2, 3 * each, seed, GROUPS).parts for seed in range(20)]
    for parts in drawn:
        assert sorted(owners(parts)) == sorted([0, 1, 2] * each)
        assert sorted(np.concatenate(parts).tolist()) == list(range(30))
    assert len({tuple(owners(parts)) for parts in drawn}) > 3
    if each == 1:
        assert [len(part) for part in sorted(drawn[0], key=lambda part: GROUPS[part[0]])] == [10, 12, 8]


def test_the_scheme_within() -> None:
    """Two shards of one label each: a client of a group with both labels has only one label if `within` says so."""
    mixed, pure = (
        draw(f"by_group(within='{within}')", LABELS, 2, 6, 8, GROUPS).parts for within in ("iid", "classes_per_client(k=1)")
    )
    assert all(len(np.unique(LABELS[part])) == 1 for part in pure)
    assert any(len(np.unique(LABELS[part])) == 2 for part in mixed)


def test_redraws_of_all_groups_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three groups, whose scheme rejects two draws each, count six redraws."""
    monkeypatch.setattr(Iid, "__call__", lambda _, labels, *_rest: Draw([np.arange(len(labels))], 2))
    assert draw("by_group", LABELS, 2, 3, 8, GROUPS).redraws == 6


def test_fewer_clients_than_groups() -> None:
    """Each client gets one group, which is drawn. The samples of the other groups are left out."""
    found = {tuple(sorted(owners(draw("by_group", LABELS, 2, 2, seed, GROUPS).parts))) for seed in range(20)}
    assert found == {(0, 1), (0, 2), (1, 2)}


def test_as_many_clients_as_the_smallest_group_has_samples() -> None:
    """Groups of 10, 12 and 8 samples have eight clients each. A client has one sample or two."""
    parts = draw("by_group", LABELS, 2, 24, 8, GROUPS).parts
    found = [sorted(len(part) for part in parts if GROUPS[part[0]] == group) for group in range(3)]
    assert found == [[1] * 6 + [2] * 2, [1] * 4 + [2] * 4, [1] * 8]


def test_groups_are_dealt_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """All groups draw from one stream, so their order decides which client gets which sample."""
    dealt = list[int]()

    def call(_: Iid, labels: np.ndarray, *_others: object) -> Draw:
        dealt.append(len(labels))
        return Draw([np.arange(len(labels))])

    monkeypatch.setattr(Iid, "__call__", call)
    draw("by_group", LABELS, 2, 3, 8, GROUPS)
    assert dealt == [10, 12, 8]


@pytest.mark.parametrize(
    ("scheme", "clients", "line"),
    [
        (
            "by_group",
            4,
            "clients = 4: by_group gives each of 3 groups as many clients; use 3, another multiple, or fewer than 3",
        ),
        ("by_group", 27, "clients = 27: 9 of them share group 2 of 8 samples; use fewer"),
        ("by_group(within='iid+iid')", 3, r"by_group\(within=...\) = 'iid\+iid': must be one scheme that knows no groups"),
        ("by_group(within=by_group)", 3, r"by_group\(within=...\) = 'by_group': must be one scheme that knows no groups"),
        ("by_group(within='shard(per_client=2)')", 3, "unknown partition scheme 'shard'; did you mean 'shards'"),
    ],
)
def test_refused(scheme: str, clients: int, line: str) -> None:
    with pytest.raises(UserError, match=line):
        draw(scheme, LABELS, 2, clients, 8, GROUPS)


def test_the_artifact(tmp_path: Path) -> None:
    """A data set with roles gives eight clients of one role each, and the id is a valid folder name. Data without groups give
    an error of one line."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "registry.yaml").write_bytes(REGISTRY.read_bytes())
    registry = load_registry(REGISTRY)
    made = partition.definition(registry["synthetic_text"], "by_group(within='shards(per_client=2)')", 8, 0.1)
    assert made["scheme"] == "by_group(within='shards(per_client=2, distinct_labels=false)')"
    name = partition.artifact_id(made)
    assert not set(name) & set("(),' /=")
    prepare("synthetic_text", root=tmp_path)
    partition.create(made, 8, tmp_path)
    assert sorted(partition.load(tmp_path, name, 8).sizes.tolist()) == [30, 40, 50, 60, 70, 80, 90, 100]
    prepare("digits", root=tmp_path)
    with pytest.raises(UserError, match=r"^'by_group\(within=iid\)': digits tells no groups"):
        partition.create(partition.definition(registry["digits"], "by_group", 8), 8, tmp_path)
