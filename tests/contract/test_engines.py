"""All engines compute the same: every method, every kind of model, partial participation, unequal sizes, several seeds."""

import dataclasses
from pathlib import Path
from unittest import mock

import pytest
import torch

from fedrepro import rng, tree
from fedrepro.engine import evaluate, lockstep, vectorised
from fedrepro.engine.loop import Checkpoints, Outcome, train, train_together
from fedrepro.engine.task import Task, as_text
from fedrepro.engine.vectorised import VectorisedEngine
from fedrepro.methods.compose import compose
from fedrepro.methods.parts import PARTS
from fedrepro.models import build, ops
from fedrepro.models.names import MODELS
from fedrepro.types import Batch, GradientRequest
from tests import toy

SEEDS = (8, 9, 10)
# Cohorts of each seed: all clients; two of five; three of five, one of which may have no data.
COHORTS = (toy.EVERYBODY, ((0, 3), (1, 4), (3, 4)), ((0, 1, 2), (1, 3, 4), (2, 3, 4)))
# Cohorts without data, or one client alone. Distillation is left out: a lone teacher equals the student, so it starts at a
# gradient of 0, where Adam makes large steps of rounding errors.
LONELY = (toy.ALONE, toy.EMPTY, ((2,), (4,), (2,)))
RULES = [name for name in PARTS.names() if PARTS.get(name).slot == "client"]
RULES += ["fedprox(mu=0.5, steps=plain)", "feddyn(norm=plain, weighting=size)", toy.part_text("fedlaw")]


def tasks(model: str = "tiny", cohorts: tuple = COHORTS, **changes) -> list[Task]:
    """Makes a toy task for each seed, each with other cohorts."""
    each = zip(SEEDS, cohorts, strict=True)
    return [toy.make_task(seed=seed, model=toy.MODELS[model](), cohorts=who, **({"rounds": 3} | changes)) for seed, who in each]


def together(text: str, several: list[Task], **options) -> list[Outcome]:
    """Trains all tasks on the vectorised engine. Returns the outcomes in the order of the tasks."""
    found = dict(train_together(several, compose(text), **options))
    return [found[i] for i in range(len(several))]


def assert_close(found: Outcome, expected: Outcome, atol: float) -> None:
    """Compares weights, statistics and every recorded number."""
    assert found.status == expected.status
    assert found.progress.round == expected.progress.round
    assert found.progress.samples == expected.progress.samples
    torch.testing.assert_close(found.params.flat, expected.params.flat, rtol=0, atol=atol)
    torch.testing.assert_close(found.buffers.flat, expected.buffers.flat, rtol=0, atol=atol)
    assert [row[:2] for row in found.progress.rows] == [row[:2] for row in expected.progress.rows]
    assert [row[2] for row in found.progress.rows] == pytest.approx([row[2] for row in expected.progress.rows], abs=atol)


@pytest.mark.parametrize(("text", "model"), toy.CASES)
def test_every_method_in_float64(text: str, model: str) -> None:
    """Two seeds together equal each alone after 2 rounds: to 1e-12, or 1e-8 with BatchNorm, which divides rounding errors by
    small deviations over batches of two."""
    several = tasks(model, rounds=2)[:2]
    for found, task in zip(together(text, several), several, strict=True):
        assert_close(found, train(task, compose(text)), 1e-12 if model == "tiny" else 1e-8)


@pytest.mark.parametrize("text", ["gh", "gh(against=in_place, denominator=own)+fednova", "fedprox(mu=0.5)+gh(against=pairs)"])
def test_clients_who_contradict_each_other(text: str) -> None:
    """Some gradients conflict in at least one round, and both engines agree."""
    several = tasks(by_class=True)
    for found, task in zip(together(text, several), several, strict=True):
        assert max(toy.values_of(found.progress.rows, "gh_conflicts")) > 0
        assert_close(found, train(task, compose(text)), 1e-11)


@pytest.mark.parametrize("text", RULES)
@pytest.mark.parametrize(("momentum", "keep", "decay"), [(0.0, False, 1e-2), (0.9, True, 1e-2)])
def test_every_client_rule_and_solver(text: str, momentum: float, keep: bool, decay: float) -> None:
    """Both engines and the plain form agree with and without momentum, kept momentum and weight decay, for cohorts of one
    client and of none."""
    several = tasks(cohorts=LONELY, client_momentum=momentum, keep_client_momentum=keep, weight_decay=decay)
    for found, task in zip(together(text, several), several, strict=True):
        assert_close(found, train(task, compose(text)), 1e-12)
        assert_close(found, train(task, compose(text), engine="plain"), 1e-12)


def real_task(name: str, seed: int, dtype: torch.dtype) -> Task:
    """A model on images of 12 pixels, or the fewest it takes, or windows of at most 12 characters. Batches of 8 leave the
    clients last batches of 4, 3 and 1 samples. The task has one round of one epoch."""
    sizes, most = (12, 11, 9), max(12, MODELS[name].smallest_side)
    shape, classes = tuple(min(places, most) for places in MODELS[name].input_shape), 10
    model, base = build(name, shape, classes), toy.make_task(seed=seed)

    def draw(purpose: str, count: int) -> Batch:
        if model.reads_text:
            return as_text(*(rng.stream(0, purpose).integers(classes, size=size) for size in ((count, *shape), count)), "cpu")
        x = torch.from_numpy(rng.stream(0, purpose).normal(0, 1, (count, *shape))).to(dtype)
        return Batch(x, torch.arange(count) % classes)

    order = torch.from_numpy(rng.stream(seed, "parts").permutation(sum(sizes)))
    changes = {"input_shape": shape, "classes": classes, "rounds": 1, "local_epochs": 1, "batch_size": 8, "client_lr": 0.02}
    made = toy.initial.draw(model, seed)
    return dataclasses.replace(
        base,
        spec=dataclasses.replace(base.spec, **changes),
        model=model,
        train=draw("train", sum(sizes)),
        evaluation=draw("test", 20),
        client_index=list(order.split(sizes)),
        held_out=[order[:0]] * len(sizes),
        client_sizes=torch.tensor(sizes, dtype=dtype),
        cohorts=torch.arange(len(sizes))[None],
        proxy=None,
        params=made.like(made.flat.to(dtype)),
        buffers=tree.map(lambda flat: flat.to(dtype), model.first_buffers()),
    )


# One model for each kind of layer and of gradient. tests/unit/models shows that every other layer takes weights with a client
# axis.
KINDS = ["mlp", "lenet", "fedgh_cnn", "mcmahan_cifar", "resnet8", "resnet20_gn", "char_lstm"]
# Float32 tolerance: the norm of the difference over the norm of a round's update. Low bits differ by 1e-6. The difference grows
# where a low bit changes a ReLU or a maximum, and with BatchNorm over small batches. The plain form differs as much.
FLOAT32 = {"mlp": 1e-5, "lenet": 0.1, "resnet8": 0.1, "char_lstm": 1e-5}


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, torch.float64) for name in KINDS] + [(name, torch.float32) for name in FLOAT32]
)
def test_every_kind_of_model(name: str, dtype: torch.dtype) -> None:
    """Two seeds together, and each alone, equal the plain form after one round: in float64 to 1e-10 (1e-8 with BatchNorm) of
    the update, in float32 to the tolerance above."""
    several = [real_task(name, seed, dtype) for seed in SEEDS[:2]]
    tolerance = 1e-8 if several[0].model.buffer_layout.names else 1e-10
    if dtype == torch.float32:
        tolerance = FLOAT32[name]
    for found, task in zip(together("fedavg", several), several, strict=True):
        expected = train(task, compose("fedavg"), engine="plain")
        moved = (expected.params.flat - task.params.flat).norm()
        for one in (found, train(task, compose("fedavg"))):
            assert (one.params.flat - expected.params.flat).norm() < tolerance * moved
            assert (one.buffers.flat - expected.buffers.flat).norm() <= tolerance * expected.buffers.flat.norm()


@pytest.mark.parametrize("model", ["tiny", "norm"])
def test_chunks_of_one_client(model: str) -> None:
    """With almost no memory each client is one chunk, and the results stay the same."""
    several = tasks(model)
    chunk = vectorised._Chunk
    with mock.patch.object(chunk, "train", autospec=True, side_effect=chunk.train) as cut:
        small = together("feddyn", several, chunk_mib=1e-6)
    assert {len(call.args[0].rows) for call in cut.call_args_list} == {1}
    whole = together("feddyn", several, chunk_mib=1024)
    for found, expected in zip(small, whole, strict=True):
        assert_close(found, expected, 1e-12 if model == "tiny" else 1e-8)


def test_padding_is_less_than_the_last_batches_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vectorised engine pads only last batches, up to the largest one in their stack."""
    seen = []
    original = torch.Tensor.index_select

    def spy(self, axis, index):
        seen.append(len(index))
        return original(self, axis, index)

    task = toy.make_task(rounds=1, batch_size=16)  # 7, 12, 16 + 4, 5 samples: last batches of 12, 7, then 5, 4
    monkeypatch.setattr(torch.Tensor, "index_select", spy)
    engine = VectorisedEngine(task, compose("fedavg"))
    engine.run_cohort(compose("fedavg").init(task.params, task.buffers), 0)
    assert seen == [1 * 16, 2 * 12, 2 * 5] * task.spec.local_epochs


def test_padded_batch_norm_sees_real_samples_only() -> None:
    """Three clients have 4, 2 and 3 of 4 samples, and huge numbers fill the padding. Output, statistics and gradients of the
    real samples equal those of each client alone, in float64 to 1e-12."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 4, 2, 3, 3, dtype=torch.float64, generator=generator)
    weight, bias, mean = (torch.randn(3, 2, dtype=torch.float64, generator=generator) for _ in range(3))
    var, valid = torch.rand(3, 2, dtype=torch.float64, generator=generator) + 0.5, torch.tensor([4, 2, 3])
    for k, count in enumerate(valid):
        x[k, count:] = 1e6
    x.requires_grad_()
    y, new_mean, new_var = ops.padded_batch_norm(x, weight, bias, mean, var, valid)
    loss = sum((y[k, :count] ** 3).sum() for k, count in enumerate(valid))
    (found,) = torch.autograd.grad(loss, x)
    for k, count in enumerate(valid):
        alone = x[k, :count].detach().requires_grad_()
        expected, one_mean, one_var = ops.batch_norm(alone, weight[k], bias[k], mean[k], var[k], True)
        torch.testing.assert_close(y[k, :count], expected, rtol=0, atol=1e-12)
        torch.testing.assert_close(new_mean[k], one_mean, rtol=0, atol=1e-12)
        torch.testing.assert_close(new_var[k], one_var, rtol=0, atol=1e-12)
        torch.testing.assert_close(found[k, :count], torch.autograd.grad((expected**3).sum(), alone)[0], rtol=0, atol=1e-10)
        assert not found[k, count:].any()


@pytest.mark.parametrize("text", ["fedavg", "feddyn"])
@pytest.mark.parametrize("lost", [False, True])
def test_seeds_go_on_from_one_round(text: str, lost: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The run is killed in round 2 of the second seed. Checkpoints exist for all seeds or none, and the three seeds continue
    from them to the same bits. If one checkpoint is lost, a line says so and all seeds start over, because they train together
    from the first round."""
    several = tasks(rounds=4, keep_client_momentum=True)
    whole = together(text, several)
    checkpoints = [Checkpoints(tmp_path / f"seed{task.seed}.pt", "key", every_s=0) for task in several]
    with pytest.raises(toy.Stopped):
        together(text, several, checkpoints=checkpoints, reports=[None, toy.stop_at(2), None])
    if lost:
        checkpoints[2].path.unlink()
    begun: list[list[int]] = [[], [], []]
    notes = [lambda t, _, i=i: begun[i].append(t) for i in range(3)]
    resumed = together(text, several, checkpoints=checkpoints, reports=notes)
    assert begun == [[0, 1, 2, 3] if lost else [2, 3]] * 3
    line = "seeds 8, 9, 10 train together, and their checkpoints are of different rounds: all start over from round 0\n"
    assert capsys.readouterr().err == (line if lost else "")
    for found, expected in zip(resumed, whole, strict=True):
        assert torch.equal(found.params.flat, expected.params.flat)
        assert found.progress.rows == expected.progress.rows


def test_a_diverged_seed_leaves_the_others_alone() -> None:
    """Weights of 1e200 overflow in one seed's first rounds. That seed ends as diverged; the others give the results of separate
    trainings."""
    several = tasks()
    huge = dataclasses.replace(several[1], params=several[1].params.like(torch.full_like(several[1].params.flat, 1e200)))
    first, second, third = together("fedavg", [several[0], huge, several[2]])
    assert second.status == "diverged"
    assert second.progress.round < 3
    for found, task in ((first, several[0]), (third, several[2])):
        assert_close(found, train(task, compose("fedavg")), 1e-12)


@pytest.mark.parametrize("model", ["lenet", "norm"])
def test_models_on_the_same_images_as_one_batch(model: str) -> None:
    """Logits of teachers are the same stacked, one after another, and by hand, with more images than fit one batch. Float64,
    1e-12."""
    task = toy.make_task(model=toy.MODELS[model]())
    params = tree.stack([tree.scale(task.params, factor) for factor in (1.0, 0.5, -2.0)])
    buffers = tree.stack([tree.map(lambda b, shift=shift: b + shift, task.buffers) for shift in (0.0, 0.5, 1.0)])
    x = task.train.x
    expected = [
        task.model.forward(params.like(w), buffers.like(b), x, False)[0] for w, b in zip(params.flat, buffers.flat, strict=True)
    ]
    with mock.patch.object(evaluate, "BATCH", 8):
        for form in (evaluate.predict, evaluate.predict_stacked):
            found = form(task.model, params, buffers, x)
            torch.testing.assert_close(found, torch.stack(expected), rtol=0, atol=1e-12)


@pytest.mark.parametrize("text", [toy.part_text(name) for name in ("fedlaw", "feddf", "server_ft")])
def test_server_steps_of_several_seeds_are_one_pass(text: str) -> None:
    """The servers of three seeds always evaluate the network for all three at once. Each proxy batch takes one pass: 12 images
    in batches of 8, 4 epochs, 3 rounds. (Tests above compare the values in float64.)"""
    several, seen = tasks("norm"), []
    original = lockstep.answer

    def spy(asked):
        seen.append(len(asked))
        return original(asked)

    with mock.patch.object(lockstep, "answer", spy):
        together(text, several)
    assert seen == [3] * (2 * 4 * 3)


def test_an_error_in_one_seeds_server_is_raised() -> None:
    """An error in a seed's thread, or in the common pass, is raised unchanged, and no thread hangs."""

    def fails(ask):
        raise KeyError("of this seed")

    with pytest.raises(KeyError, match="of this seed"):
        lockstep.run([lambda ask: 1, fails])
    asked = GradientRequest(None, None, torch.zeros(1), None)  # type: ignore[arg-type]
    broken = mock.patch.object(lockstep, "answer", side_effect=KeyError("in the pass"))
    with broken, pytest.raises(KeyError, match="in the pass"):
        lockstep.run([lambda ask: ask(asked), lambda ask: ask(asked)])
    assert lockstep.run([lambda ask: 1, lambda ask: 2]) == [1, 2]
