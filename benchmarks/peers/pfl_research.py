"""pfl-research (Granqvist et al., 2024, https://arxiv.org/abs/2404.06430): its FedAvg on its PyTorch backend, data preloaded.

    benchmarks/.envs/pfl_research/bin/python benchmarks/peers/pfl_research.py WORK.npz --threads 1

With two threads it runs as two worker processes of one thread each. The clients of a cohort are balanced over them by their
number of samples, as its guide to fast simulations advises. In its first round it evaluates a cohort's clients before and
after training, whatever its settings.
"""
# pyright: reportMissingImports=false

import itertools
import os
import socket
import subprocess
import sys
import time

import contender


def main() -> None:
    """Trains a work item and prints one line of JSON. With more threads, this process starts the other workers."""
    path, threads = contender.start()
    os.environ["PFL_PYTORCH_DEVICE"] = "cpu"
    workers = []
    if threads > 1 and "PFL_WORKER_RANK" not in os.environ:  # importing pfl joins its workers
        with socket.socket() as probe:
            probe.bind(("localhost", 0))
            port = probe.getsockname()[1]
        # pfl connects only to the first address. It takes the number of workers from the length of the list.
        os.environ["PFL_WORKER_ADDRESSES"] = ",".join([f"localhost:{port}"] * threads)
        for rank in range(1, threads):
            environment = os.environ | {"PFL_WORKER_RANK": str(rank)}
            workers.append(subprocess.Popen([sys.executable, *sys.argv], env=environment, stdout=subprocess.DEVNULL))
        os.environ["PFL_WORKER_RANK"] = "0"
    train(path, threads)
    for worker in workers:
        if worker.wait():
            sys.exit(f"pfl_research: a worker failed with exit status {worker.returncode}; its message is above")


def train(path: str, threads: int) -> None:
    """Trains the work of `path` as one of `threads` workers. The first worker reports."""
    import torch
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.aggregate.weighting import WeightByDatapoints
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.callback.central_evaluation import CentralEvaluationCallback
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.pytorch import PyTorchTensorDataset
    from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
    from pfl.metrics import Metrics, Weighted
    from pfl.model.pytorch import PyTorchModel
    from torch_models import accuracy, make_model

    class Module(torch.nn.Sequential):
        """A network with the two methods that pfl calls."""

        def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.cross_entropy(self(x), y)

        @torch.no_grad()
        def metrics(self, x: torch.Tensor, y: torch.Tensor) -> dict:
            return {"accuracy": Weighted(int((self(x).argmax(1) == y).sum()), len(y))}

    class Clock(TrainingProcessCallback):
        """Measures the seconds of each round. pfl calls it last in a round."""

        def __init__(self) -> None:
            self.round_s: list[float] = []

        def on_train_begin(self, *, model: PyTorchModel) -> Metrics:
            self.began = time.perf_counter()
            return Metrics()

        def after_central_iteration(self, aggregate_metrics, model, *, central_iteration: int) -> tuple[bool, Metrics]:
            now = time.perf_counter()
            self.round_s.append(now - self.began)
            self.began = now
            return False, Metrics()

    torch.set_num_threads(1)
    torch.manual_seed(contender.SEED)
    work = contender.load(path)
    spec = work.spec
    x, y = torch.from_numpy(work.train_images), torch.from_numpy(work.train_y)
    test = torch.from_numpy(work.test_images), torch.from_numpy(work.test_y)
    parts = [torch.from_numpy(part) for part in work.parts]

    def make_client(client: int) -> PyTorchTensorDataset:
        # pfl takes the batches of a user in order. This shuffles the user's samples each time.
        shuffled = parts[client][torch.randperm(len(parts[client]))]
        return PyTorchTensorDataset((x[shuffled], y[shuffled]), user_id=client)

    clients = itertools.chain.from_iterable(itertools.cycle(work.cohorts))
    sizes = {client: len(part) for client, part in enumerate(parts)}
    data = FederatedDataset(make_client, lambda: next(clients), user_id_to_weight=sizes)
    network = Module(*make_model(spec["model"]))
    sgd = lambda weights, lr: torch.optim.SGD(weights, lr, spec["client_momentum"], 0, spec["weight_decay"])  # noqa: E731
    model = PyTorchModel(network, sgd, central_optimizer=torch.optim.SGD(network.parameters(), 1.0))
    hyper = NNTrainHyperParams(
        local_batch_size=spec["batch_size"], local_num_epochs=spec["local_epochs"], local_learning_rate=spec["client_lr"]
    )
    rounds, cohort, clock = len(work.cohorts), len(work.cohorts[0]), Clock()
    if any(len(other) != cohort for other in work.cohorts):
        sys.exit(f"{path}: cohorts: pfl takes one size for all rounds; draw a partition that leaves no client empty")
    test_params = NNEvalHyperParams(local_batch_size=1000)
    evaluation = [CentralEvaluationCallback(PyTorchTensorDataset(test), test_params)] if spec["evaluate"] else []
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=rounds,
            evaluation_frequency=rounds,  # of the clients
            train_cohort_size=cohort,
            val_cohort_size=0,
        ),
        SimulatedBackend(data, data, postprocessors=[WeightByDatapoints()]),
        model,
        hyper,
        test_params,
        [*evaluation, clock],
        send_metrics_to_platform=False,
    )
    if os.environ.get("PFL_WORKER_RANK", "0") == "0":
        contender.report("pfl_research", "pfl", work, clock.round_s, accuracy(network, *test), threads, workers=threads)


if __name__ == "__main__":
    main()
