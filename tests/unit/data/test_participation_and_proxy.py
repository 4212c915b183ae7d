"""Cohorts and proxy splits: their sizes and distributions, and what a longer run or a larger proxy set keeps."""

import numpy as np
import pytest

from fedrepro.data import participation, proxy
from fedrepro.data.arrays import arrays_folder, load_arrays
from fedrepro.data.registry import load_registry
from fedrepro.errors import UserError

from .conftest import REGISTRY, flip_a_byte

ENTRY = load_registry(REGISTRY)["digits"]
LABELS = np.arange(60) % 3


# (clients, ratio) -> m
SIZES = [
    ((10, 1.0), 10),
    ((10, 0.5), 5),
    ((7, 0.5), 3),
    ((30, 0.1), 3),
    ((100, 0.29), 29),
    ((10, 0.01), 1),
    ((1, 0.3), 1),
    ((20, 1), 20),
]


@pytest.mark.parametrize(("arguments", "size"), SIZES)
def test_cohort_size(arguments, size):
    """The size is truncated as in the authors' code, but from the decimal that was written. A cohort is never empty."""
    made = participation.definition(*arguments, rounds=3)
    assert participation.cohort_size(made) == size
    assert participation.draw(made, 8).shape == (3, size)


def test_cohorts_are_clients_once_each_and_sorted():
    cohorts = participation.draw(participation.definition(20, 0.4, 50), 8)
    assert cohorts.dtype == np.int64
    assert cohorts.min() == 0
    assert cohorts.max() == 19
    assert (np.diff(cohorts, axis=1) > 0).all()
    assert len(np.unique(cohorts, axis=0)) > 40


def test_cohorts_of_a_seed_stay_as_they_are():
    """Published runs trained with such draws, so a change of them must be seen."""
    assert participation.draw(participation.definition(10, 0.3, 3), 8).tolist() == [[2, 4, 9], [0, 7, 8], [3, 6, 7]]


def test_every_client_is_as_likely():
    """Over 4,000 rounds of 5 of 20 clients, each is chosen 1,000 +- 27 times (binomial). The test allows five such
    deviations."""
    chosen = np.bincount(participation.draw(participation.definition(20, 0.25, 4000), 8).ravel(), minlength=20)
    assert abs(chosen - 1000).max() < 140


def test_a_longer_run_begins_with_the_shorter_one():
    """Row t depends only on (seed, t)."""
    short, long = (participation.draw(participation.definition(20, 0.4, rounds), 8) for rounds in (5, 50))
    assert (long[:5] == short).all()


def test_a_fixed_cohort_is_that_of_round_0():
    """All rounds have the same cohort. Definitions of drawn cohorts leave the key out, so their ids are those of older
    files."""
    drawn, fixed = participation.definition(20, 0.4, 50), participation.definition(20, 0.4, 50, "fixed")
    cohorts = participation.draw(fixed, 8)
    assert cohorts.shape == (50, 8)
    assert (cohorts == participation.draw(drawn, 8)[0]).all()
    assert "cohorts" not in drawn
    assert participation.artifact_id(fixed).startswith("n20-ratio0.4-rounds50-fixed-")


COHORTS_REFUSED = [
    ((0, 0.5, 5), "clients = 0"),
    ((10, 0.0, 5), r"participation = 0\.0: must lie in \(0, 1\]"),
    ((10, float("nan"), 5), "participation = nan"),
    ((10, 0.5, 5, "same"), "cohorts = 'same': must be one of drawn, fixed, late"),
    ((10, 0.5, 0), "rounds = 0: must be a whole number >= 1"),
]


@pytest.mark.parametrize(("arguments", "line"), COHORTS_REFUSED)
def test_participation_refuses(arguments, line):
    with pytest.raises(UserError, match=line):
        participation.definition(*arguments)


def test_cohorts_saved_and_loaded(tmp_path):
    """Loading needs no data set, and a damaged file gives one line."""
    made = participation.definition(20, 0.4, 10)
    name = participation.artifact_id(made)
    assert name.startswith("n20-ratio0.4-rounds10-")
    path = participation.create(made, 8, tmp_path)
    assert path == tmp_path / "data/participation" / name / "seed8.npz"
    loaded = participation.load(tmp_path, name, 8)
    assert (loaded.cohorts == participation.draw(made, 8)).all()
    assert loaded.manifest["definition"] == made
    assert loaded.manifest["cohort_size"] == 8
    flip_a_byte(path)
    with pytest.raises(UserError, match=r"seed8\.npz: does not match the sha256"):
        participation.load(tmp_path, name, 8)


def test_proxy_is_balanced_and_excluded_from_evaluation(digits):
    """The proxy set has 10 of each class. The rest of the test set, and nothing else, is for evaluation."""
    made = proxy.definition(ENTRY, 10)
    path = proxy.create(made, 8, digits)
    name = proxy.artifact_id(made)
    assert path == digits / "data/proxy" / name / "seed8.npz"
    assert name.startswith("digits-perclass10-")
    loaded = proxy.load(digits, name, 8)
    labels = load_arrays(arrays_folder(digits, "digits", (1, 8, 8))).test_labels
    assert np.bincount(labels[loaded.proxy_index]).tolist() == [10] * 10
    assert not set(loaded.proxy_index) & set(loaded.evaluation_index)
    assert np.sort(np.concatenate([loaded.proxy_index, loaded.evaluation_index])).tolist() == list(range(500))
    assert loaded.manifest["sizes"] == {"proxy": 100, "evaluation": 400}


def test_a_long_tailed_proxy(digits):
    """The tail has ten of class 0 down to one of class 9, 10^(1 - c/9) rounded down, taken from the balanced set. The evaluated
    images are the same."""
    made = proxy.definition(ENTRY, 10, "long_tailed(ratio=10)")
    proxy.create(made, 8, digits)
    name = proxy.artifact_id(made)
    assert name.startswith("digits-perclass10-long_tailed-ratio10-")
    loaded = proxy.load(digits, name, 8)
    labels = load_arrays(arrays_folder(digits, "digits", (1, 8, 8))).test_labels
    assert np.bincount(labels[loaded.proxy_index]).tolist() == [10, 7, 5, 4, 3, 2, 2, 1, 1, 1]
    balanced_index, evaluation_index = proxy.draw(labels, 10, 10, 8)
    assert set(loaded.proxy_index) < set(balanced_index)
    assert loaded.evaluation_index.tolist() == evaluation_index.tolist()
    assert proxy.definition(ENTRY, 10, "balanced") == proxy.definition(ENTRY, 10)


def test_a_tail_of_ratio_1_is_the_balanced_proxy():
    """A tail of ratio 1 keeps every image of the balanced set."""
    for tail, balanced in zip(proxy.draw(LABELS, 3, 5, 8, "long_tailed(ratio=1)"), proxy.draw(LABELS, 3, 5, 8), strict=True):
        assert tail.tolist() == balanced.tolist()


def test_an_empty_proxy_leaves_the_whole_test_set(digits):
    made = proxy.definition(ENTRY, 0)
    proxy.create(made, 8, digits)
    loaded = proxy.load(digits, proxy.artifact_id(made), 8)
    assert (loaded.proxy_index.shape, loaded.proxy_index.dtype) == ((0,), np.int64)
    assert loaded.evaluation_index.tolist() == list(range(500))


def test_each_class_is_shuffled_by_its_own_stream():
    """Two classes of equal size give images at different positions."""
    chosen, _ = proxy.draw(np.repeat([0, 1], 50), 2, 10, 8)
    assert set(chosen[chosen < 50].tolist()) != set((chosen[chosen >= 50] - 50).tolist())


def test_a_smaller_proxy_is_part_of_a_larger_one():
    """So a sweep over proxy sizes adds images and does not change the others."""
    small, large = (set(proxy.draw(LABELS, 3, per_class, 8)[0]) for per_class in (2, 7))
    assert small < large
    assert small != set(proxy.draw(LABELS, 3, 2, 9)[0])


@pytest.mark.parametrize(
    ("per_class", "line"),
    [
        (20, "proxy_per_class = 20: class 0 has 20 test images, and at least one must stay for evaluation; use 19 at most"),
        (21, "class 0 has 20 test images"),
    ],
)
def test_proxy_leaves_something_to_evaluate(per_class, line):
    with pytest.raises(UserError, match=line):
        proxy.draw(LABELS, 3, per_class, 8)
    assert len(proxy.draw(LABELS, 3, 19, 8)[1]) == 3


@pytest.mark.parametrize("per_class", [-1, 1.5, True])
def test_proxy_refuses(per_class):
    with pytest.raises(UserError, match=r"proxy_per_class = .*: must be a whole number >= 0"):
        proxy.definition(ENTRY, per_class)
