"""Partitions: invariants of every scheme, definitions, files, and refused arguments. Each scheme also has its own tests."""

import json
import re

import numpy as np
import pytest

from fedrepro.data import partition
from fedrepro.data.arrays import arrays_folder, load_arrays
from fedrepro.data.partition import SCHEMES, draw, picture
from fedrepro.data.partition.picture import save_picture
from fedrepro.data.registry import load_registry
from fedrepro.errors import UserError
from fedrepro.files import sha256_file
from tests.helpers.one_line import one_line

from .conftest import REGISTRY, flip_a_byte

ENTRY = load_registry(REGISTRY)["digits"]
LABELS = np.random.default_rng(7).permutation(np.repeat(np.arange(5), [40, 1, 0, 25, 34]))  # [100]; class 2 does not occur
BLIND = ["iid", "log_normal_sizes(sigma=1.0)"]  # schemes that do not read labels
COMPLETE = [
    *BLIND,
    "dirichlet_per_class(alpha=0.05)",
    "dirichlet_per_class(alpha=1.0)",
    "dirichlet_per_class(alpha=100.0)",
    "dirichlet_balanced(alpha=0.05, min_size=0)",
    "dirichlet_balanced(alpha=100.0, min_size=1, max_redraws=500)",
    "classes_per_client(k=5)",
    "log_normal_dirichlet(sigma=0.5, alpha=0.1)",
    "dirichlet_hybrid",
]
EXAMPLES = [
    *COMPLETE,
    "dirichlet_per_client(beta=0.01)",
    "dirichlet_per_client(beta=10.0)",
    "dirichlet_first_come(beta=0.01)",
    "dirichlet_unmapped(beta=0.5)",
    "dirichlet_hybrid_equal(alpha_first=10, alpha_rest=0.1)",
    "long_tailed(ratio=5)",
    "shards(per_client=1)",
    "shards(per_client=1, distinct_labels=true)",
    "classes_per_client(k=2)",
    "pachinko(alpha=0.1, beta=10, hierarchy='0-1 2-3-4')",
]


@pytest.mark.parametrize(("clients", "sizes"), [(3, [34, 33, 33]), (100, [1] * 100), (1, [100])])
def test_iid_sizes(clients, sizes):
    assert [len(part) for part in draw("iid", LABELS, 5, clients, 0).parts] == sizes


def test_every_scheme_has_an_example():
    """A new scheme without a line in EXAMPLES fails here. by_group and label_sets, which fit only certain data, have their own
    tests."""
    found = {SCHEMES.canonical(partition.make_scheme(text)).name for text in EXAMPLES}
    assert found | {"by_group", "label_sets"} == set(SCHEMES.names())


@pytest.mark.parametrize("scheme", EXAMPLES)
@pytest.mark.parametrize("clients", [1, 7, 50])
def test_no_sample_twice(scheme, clients):
    """The parts are ascending and disjoint. For a COMPLETE scheme they are together the training set."""
    parts = draw(scheme, LABELS, 5, clients, 8).parts
    assert len(parts) == clients
    assert all((np.diff(part) > 0).all() and part.dtype == np.int64 for part in parts)
    taken = np.sort(np.concatenate(parts))
    assert len(np.unique(taken)) == len(taken)
    assert set(taken) <= set(range(100))
    if scheme in COMPLETE:
        assert len(taken) == 100


@pytest.mark.parametrize("scheme", sorted(set(EXAMPLES) - {*BLIND, "dirichlet_unmapped(beta=0.5)"}))
def test_the_order_of_rows_is_irrelevant(scheme):
    """Only the number of samples of each class matters: a shuffle of the rows does not change the class counts of any client.
    The exception is dirichlet_unmapped, which does not map indices back."""
    shuffled = np.random.default_rng(1).permutation(LABELS)
    assert (class_counts(scheme, LABELS) == class_counts(scheme, shuffled)).all()


@pytest.mark.parametrize("scheme", BLIND)
def test_labels_are_irrelevant(scheme):
    """If classes are renamed, every part stays the same."""
    renamed = np.array([3, 0, 4, 1, 2])[LABELS]
    pairs = zip(draw(scheme, LABELS, 5, 7, 8).parts, draw(scheme, renamed, 5, 7, 8).parts, strict=True)
    assert all((one == other).all() for one, other in pairs)


def class_counts(scheme, labels):
    """[7, 5]"""
    return np.stack([np.bincount(labels[part], minlength=5) for part in draw(scheme, labels, 5, 7, 8).parts])


@pytest.mark.parametrize("scheme", EXAMPLES)
def test_depends_on_the_seed_alone(scheme):
    """The same seed gives the same parts, whatever the global generator. Another seed gives other parts."""
    np.random.seed(0)  # noqa: NPY002
    first = [part.tolist() for part in draw(scheme, LABELS, 5, 7, 8).parts]
    np.random.seed(1)  # noqa: NPY002
    np.random.random(5)  # noqa: NPY002
    assert first == [part.tolist() for part in draw(scheme, LABELS, 5, 7, 8).parts]
    assert first != [part.tolist() for part in draw(scheme, LABELS, 5, 7, 9).parts]


@pytest.mark.parametrize(
    ("fraction", "size", "held_out"),
    [(0.3, 10, 3), (0.3, 9, 2), (0.3, 1, 0), (0.999999, 2, 1), (0.29, 100, 29), (0.0, 5, 0), (0.5, 0, 0)],
)
def test_local_split(fraction, size, held_out):
    """floor(fraction * size) samples are held out, so a client with any sample trains on at least one."""
    part = np.arange(1000, 1000 + size)
    train, validation = partition.split_locally(part, fraction, seed=8, client=2)
    assert len(validation) == held_out
    assert len(train) >= 1 or size == 0
    assert np.sort(np.concatenate([train, validation])).tolist() == part.tolist()
    again = partition.split_locally(part, fraction, seed=8, client=2)
    assert (train == again[0]).all()
    assert (validation == again[1]).all()


def test_local_split_has_a_stream_per_client():
    part = np.arange(100)
    held_out = [partition.split_locally(part, 0.3, seed, client)[1].tolist() for seed, client in ((8, 0), (8, 1), (9, 0))]
    assert len({tuple(indices) for indices in held_out}) == 3


REFUSED = [
    (("dirichlet_per_class(alpha=0)", 10), r"dirichlet_per_class\(alpha=\.\.\.\) = 0\.0: must be finite and > 0"),
    (("dirichlet_per_class(alpha=1e999)", 10), "must be finite"),
    (("dirichlet_per_class(alpha=much)", 10), "is not a number"),
    (("dirichlet_per_class(alfa=1)", 10), "unknown argument 'alfa'; did you mean 'alpha'"),
    (("dirichlet_per_clas(alpha=1)", 10), "unknown partition scheme 'dirichlet_per_clas'; did you mean 'dirichlet_per_class'"),
    (("iid+iid", 10), "a partition has one scheme, not 2"),
    (("iid", 0), "clients = 0: must be a whole number >= 1"),
    (("iid", True), "clients = True: must be a whole number >= 1"),
    (("iid", 10, 1.0), r"local_validation = 1\.0: must lie in \[0, 1\)"),
    (("iid", 10, float("nan")), "local_validation = nan"),
]


@pytest.mark.parametrize(("arguments", "line"), REFUSED)
def test_definition_refuses(arguments, line):
    with one_line(line):
        partition.definition(ENTRY, *arguments)


def test_more_clients_than_samples_is_refused():
    with pytest.raises(UserError, match="clients = 101: more clients than the 100 training samples; use 100 at most"):
        draw("iid", LABELS, 5, 101, 0)


def test_a_scheme_that_deals_a_sample_twice_is_a_bug():
    def twice(labels, classes, clients, rng):
        return partition.Draw([np.array([0, 1]), np.array([1, 2])])

    with pytest.raises(ValueError, match="a sample in two parts"):
        draw(twice, LABELS, 5, 2, 0)


def test_definition_and_id():
    """The scheme is spelt out with all arguments, and alpha=100 is alpha=100.0. Everything but the seed enters the id."""
    one = partition.definition(ENTRY, "dirichlet_per_class(alpha=100)", 10, 0.3)
    assert one == {
        "dataset": "digits",
        "dataset_sha": ENTRY.sha,
        "scheme": "dirichlet_per_class(alpha=100.0)",
        "clients": 10,
        "local_validation": 0.3,
    }
    name = partition.artifact_id(one)
    assert name.startswith("digits-dirichlet_per_class-alpha100-n10-")
    assert len(name.rpartition("-")[2]) == 6
    assert name == partition.artifact_id(partition.definition(ENTRY, "dirichlet_per_class(alpha=100.0)", 10, 0.3))
    others = [("dirichlet_per_class(alpha=100)", 11, 0.3), ("dirichlet_per_class(alpha=100)", 10, 0.2), ("iid", 10, 0.3)]
    assert len({name, *(partition.artifact_id(partition.definition(ENTRY, *other)) for other in others)}) == 4
    assert len({partition.artifact_id(one | {"dataset_sha": "other"}), name}) == 2


@pytest.fixture
def saved(own_digits):
    """(root, definition, id, path) of one saved partition."""
    made = partition.definition(ENTRY, "dirichlet_per_class(alpha=0.1)", 10, 0.3)
    return own_digits, made, partition.artifact_id(made), partition.create(made, 8, own_digits)


def test_saved_and_loaded(saved):
    """The files hold every sample once, and the manifest agrees with them."""
    root, made, name, path = saved
    assert path == root / "data/partitions" / name / "seed8.npz"
    loaded = partition.load(root, name, 8)
    arrays = load_arrays(arrays_folder(root, "digits", (1, 8, 8)))
    assert loaded.clients == 10
    assert loaded.class_counts.shape == (10, 10)
    clients = [np.concatenate([loaded.train(i), loaded.validation(i)]) for i in range(10)]
    assert np.sort(np.concatenate(clients)).tolist() == list(range(1297))
    for i, part in enumerate(clients):
        assert loaded.sizes[i] == len(part)
        assert len(loaded.validation(i)) == int(0.3 * len(part))
        assert np.bincount(arrays.train_labels[part], minlength=10).tolist() == loaded.class_counts[i].tolist()
    manifest = loaded.manifest
    assert (manifest["schema"], manifest["id"], manifest["definition"], manifest["seed"]) == (1, name, made, 8)
    assert manifest["sizes"] == loaded.sizes.tolist()
    assert manifest["redraws"] == 0
    assert manifest["train_sizes"] == [len(loaded.train(i)) for i in range(10)]
    assert manifest["class_counts"] == loaded.class_counts.tolist()
    assert manifest["arrays_manifest_sha256"] == arrays.sha256
    assert loaded.sha256 == sha256_file(path)


def test_the_manifest_counts_the_draws_that_were_thrown_away(own_digits):
    """With this seed, 20 clients of at least 40 of digits' 1,297 images take more than one draw."""
    made = partition.definition(ENTRY, "dirichlet_balanced(alpha=0.5, min_size=40)", 20)
    partition.create(made, 8, own_digits)
    labels = load_arrays(arrays_folder(own_digits, "digits", (1, 8, 8))).train_labels
    redraws = draw(made["scheme"], labels, 10, 20, 8).redraws
    assert redraws > 0
    assert partition.load(own_digits, partition.artifact_id(made), 8).manifest["redraws"] == redraws


@pytest.mark.drawn
def test_saving_again_gives_the_same_bytes(saved):
    """npz, manifest and picture are all the same."""
    root, made, _, path = saved
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    assert sorted(before) == ["seed8.json", "seed8.npz", "seed8.svg"]
    partition.create(made, 8, root)
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


@pytest.mark.drawn
def test_the_picture_has_a_legible_number_in_every_cell_that_holds_samples(saved, tmp_path):
    """Up to 20 clients by 10 classes, each count is in type of at least 9 points, on a picture of fixed width. A 0 has no
    number."""
    counts = np.arange(1000, 1200).reshape(20, 10)
    counts[3, 4] = 0
    text = save_picture(tmp_path / "p.svg", counts, "a title").read_text()
    shown = re.findall(r"font-size: ?([\d.]+)px|font: ([\d.]+)px", text)
    assert min(float(size) for pair in shown for size in pair if size) >= 9
    assert re.findall(r">(1[01]\d\d)</text>", text) == [str(count) for count in counts.flat if count]
    assert 'width="374.4pt"' in text


def test_the_picture_has_clients_downwards_and_classes_across(tmp_path, monkeypatch):
    """Three clients, two classes. Numbers above 6, which is 0.6 times the largest, are white. Cells of 0 have no colour."""
    figures = []
    monkeypatch.setattr(picture, "save", lambda figure, path: (figures.append(figure), path.write_text("")))
    save_picture(tmp_path / "p.svg", np.array([[0, 5], [10, 6], [1, 0]]), "a title")
    (axes,) = figures[0].axes
    numbers = {text.get_position(): (text.get_text(), text.get_color()) for text in axes.texts}
    assert numbers == {(1, 0): ("5", "black"), (0, 1): ("10", "white"), (1, 1): ("6", "black"), (0, 2): ("1", "black")}
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("class", "client")
    (image,) = axes.images
    assert image.get_clim() == (0, 10)
    assert image.get_array().mask.tolist() == [[True, False], [False, False], [False, True]]


def test_damage_is_one_line(saved):
    root, _, name, path = saved
    flip_a_byte(path)
    with one_line(r"seed8\.npz: does not match the sha256 in seed8\.json; delete both and run"):
        partition.load(root, name, 8)
    path.unlink()
    with pytest.raises(UserError, match=r"seed8\.npz: no such file"):
        partition.load(root, name, 8)
    path.with_suffix(".json").unlink()
    with pytest.raises(UserError, match=r"seed8\.json: no such file"):
        partition.load(root, name, 8)


@pytest.mark.parametrize("change", [{"seed": 9}, {"schema": 0}, {"id": "other-000000"}, {"definition": {"clients": 3}}])
def test_a_swapped_manifest_is_noticed(change, saved):
    root, _, name, path = saved
    manifest = json.loads(path.with_suffix(".json").read_text())
    path.with_suffix(".json").write_text(json.dumps(manifest | change))
    with pytest.raises(UserError, match="belongs to another artifact or version"):
        partition.load(root, name, 8)


def test_needs_the_native_arrays(project):
    made = partition.definition(ENTRY, "iid", 10)
    with pytest.raises(UserError, match=r"data/arrays/digits/1x8x8/manifest\.json: no such file"):
        partition.create(made, 8, project)
    assert not (project / "data/partitions").exists()


def test_a_changed_registry_is_noticed(own_digits):
    """A definition of the old entry cannot be drawn from new arrays, and the other way round."""
    made = partition.definition(ENTRY, "iid", 10)
    registry = own_digits / "data/registry.yaml"
    registry.write_text(registry.read_text().replace('content_sha256: "cb', 'content_sha256: "cc'))
    with pytest.raises(UserError, match="digits: changed since this definition was made"):
        partition.create(made, 8, own_digits)
    made = partition.definition(load_registry(registry)["digits"], "iid", 10)
    with pytest.raises(UserError, match="made from another entry"):
        partition.create(made, 8, own_digits)


@pytest.mark.parametrize("seed", [-1, 1.0, True, "8"])
def test_bad_seeds(seed, digits):
    with pytest.raises(UserError, match=r"seed = .*: must be a whole number >= 0"):
        partition.create(partition.definition(ENTRY, "iid", 10), seed, digits)
