"""FedJAX (Ro et al., 2021, https://arxiv.org/abs/2108.02117): FedAvg by its `for_each_client` on the default JIT backend.

    benchmarks/.envs/fedjax/bin/python benchmarks/peers/fedjax.py WORK.npz --threads 1

FedJAX fills a client's last batch up to the batch size with more of its samples, so that one compiled step serves all
batches. With two threads XLA splits single operations over two cores.
"""
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import sys
import time
from collections.abc import Callable
from pathlib import Path

import contender

sys.path.remove(str(Path(__file__).resolve().parent))  # otherwise the next line imports this file, not the package

import fedjax
import haiku as hk
import jax
import jax.numpy as jnp
import optax

CONVOLUTIONS = {  # (channels, kernel, whether a max-pool of 2 follows)
    "two_nn": [],
    "logistic": [],
    "mnist_cnn": [(32, 5, True), (64, 5, True)],
    "simple_cnn": [(32, 3, True), (64, 3, True), (64, 3, False)],
}
HIDDEN = {"two_nn": [512, 256], "logistic": [], "mnist_cnn": [512], "simple_cnn": [64]}
WEIGHTS = hk.initializers.VarianceScaling(1 / 3, "fan_in", "uniform")  # U(-1/sqrt(fan in), 1/sqrt(fan in)), as PyTorch's


def make_model(name: str, sample: dict) -> fedjax.Model:
    """The network `name` for batches like `sample`: x float32 [B, H, W, C], y int [B]; logits [B, 10]."""

    def forward(batch: dict) -> jax.Array:
        value = batch["x"]
        for channels, kernel, pooled in CONVOLUTIONS[name]:
            value = jax.nn.relu(hk.Conv2D(channels, kernel, padding="VALID", w_init=WEIGHTS)(value))
            value = hk.max_pool(value, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") if pooled else value
        value = hk.Flatten()(value)
        for width in HIDDEN[name]:
            value = jax.nn.relu(hk.Linear(width, w_init=WEIGHTS)(value))
        return hk.Linear(10, w_init=WEIGHTS)(value)

    return fedjax.create_model_from_haiku(
        hk.transform(forward),
        sample,
        train_loss=lambda batch, logits: optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]),
        eval_metrics={"accuracy": fedjax.metrics.Accuracy()},
    )


def make_trainer(model: fedjax.Model, spec: dict) -> Callable:
    """(global weights, clients) -> each client's weights after its local training; a client is (id, batches, None)."""
    decay = optax.add_decayed_weights(spec["weight_decay"]) if spec["weight_decay"] else optax.identity()
    sgd = optax.chain(decay, optax.sgd(spec["client_lr"], spec["client_momentum"] or None))
    optimizer, gradient = fedjax.optimizers.create_optimizer_from_optax(sgd), fedjax.model_grad(model)

    def step(state: dict, batch: dict) -> dict:
        grads = gradient(state["params"], batch, None)  # no random key: nothing in the networks is random
        optimizer_state, params = optimizer.apply(grads, state["optimizer"], state["params"])
        return {"params": params, "optimizer": optimizer_state}

    return fedjax.for_each_client(
        lambda params, _: {"params": params, "optimizer": optimizer.init(params)}, step, lambda _, state: state["params"]
    )


@jax.jit
def add_share(total: fedjax.Params, params: fedjax.Params, share: float) -> fedjax.Params:
    """Adds one term of the weighted mean. Summing term by term keeps only one client's weights in memory."""
    return jax.tree_util.tree_map(lambda a, b: a + share * b, total, params)


def main() -> None:
    """Trains a work item and prints one line of JSON."""
    path, threads = contender.start()
    jax.config.update("jax_platforms", "cpu")
    work = contender.load(path)
    spec, sizes = work.spec, [len(part) for part in work.parts]
    x, y = work.train_images.transpose(0, 2, 3, 1), work.train_y
    batching = fedjax.ShuffleRepeatBatchHParams(spec["batch_size"], num_epochs=spec["local_epochs"])
    clients = [fedjax.ClientDataset({"x": x[part], "y": y[part]}).shuffle_repeat_batch(batching) for part in work.parts]
    test = fedjax.ClientDataset({"x": work.test_images.transpose(0, 2, 3, 1), "y": work.test_y})
    test_batches = list(test.padded_batch(batch_size=1000))

    model = make_model(spec["model"], {"x": jnp.asarray(x[:1]), "y": jnp.asarray(y[:1])})
    train = make_trainer(model, spec)
    evaluate = lambda params: 100 * float(fedjax.evaluate_model(model, params, test_batches)["accuracy"])  # noqa: E731
    params, round_s, accuracy = model.init(jax.random.PRNGKey(contender.SEED)), [], None
    for cohort in work.cohorts:
        began = time.perf_counter()
        total, samples = fedjax.tree_util.tree_zeros_like(params), sum(sizes[i] for i in cohort)
        for i, trained in train(params, [(i, clients[i], None) for i in cohort]):
            total = add_share(total, trained, sizes[i] / samples)
        params = jax.block_until_ready(total)
        if spec["evaluate"]:
            accuracy = evaluate(params)
        round_s.append(time.perf_counter() - began)
    accuracy = evaluate(params) if accuracy is None else accuracy
    contender.report("fedjax", "fedjax", work, round_s, accuracy, threads, workers=1)


if __name__ == "__main__":
    main()
