"""Flower's simulation (Beutel et al., 2020, https://arxiv.org/abs/2007.14390): its FedAvg, on one Ray actor for each thread.

    benchmarks/.envs/flower/bin/python benchmarks/peers/flower.py WORK.npz --threads 1

Each actor keeps all images in memory. It reads them at its first message. Evaluation needs no actor, so only the first round
takes this time. Flower's usage reports are off.
"""
# pyright: reportMissingImports=false

import itertools
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import contender

os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}  # flower reads it on import

import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.serverapp.strategy.strategy_utils import sample_nodes
from flwr.simulation import run_simulation
from torch_models import accuracy, make_model


class FixedCohorts(FedAvg):
    """FedAvg weighted by number of samples, over given cohorts instead of drawn ones. Nodes keep no state: any may act for any
    client."""

    def __init__(self, path: str) -> None:
        super().__init__(fraction_evaluate=0.0, weighted_by_key="samples")
        self.path, self.cohorts = path, contender.load(path).cohorts

    def configure_train(self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid) -> Iterable[Message]:
        """One message for each client of the round. Flower counts rounds from 1."""
        cohort = self.cohorts[server_round - 1]
        nodes, _ = sample_nodes(grid, len(cohort), len(cohort))  # waits until all nodes have connected
        for node, client in zip(nodes, cohort, strict=True):
            task = ConfigRecord({"path": self.path, "client": client})
            yield Message(RecordDict({"arrays": arrays, "config": task}), dst_node_id=node, message_type=MessageType.TRAIN)

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Aggregates as FedAvg. Raises RuntimeError if a client failed, where Flower's FedAvg would aggregate the other
        clients."""
        replies = list(replies)
        if failed := [reply.error.reason for reply in replies if reply.has_error()]:
            raise RuntimeError(f"round {server_round}: {len(failed)} clients failed, the first with: {failed[0]}")
        return super().aggregate_train(server_round, replies)


def train(message: Message, context: Context) -> Message:
    """A client's round: SGD on its samples, from the weights that it received."""
    torch.set_num_threads(1)
    work = contender.load(message.content["config"]["path"])
    spec, part = work.spec, torch.from_numpy(work.parts[message.content["config"]["client"]])
    x, y = torch.from_numpy(work.train_images), torch.from_numpy(work.train_y)
    with torch.device("meta"):  # saves the time for initial weights that are replaced anyway
        model = make_model(spec["model"])
    model.load_state_dict(message.content["arrays"].to_torch_state_dict(), assign=True)
    sgd = torch.optim.SGD(model.parameters(), spec["client_lr"], spec["client_momentum"], 0, spec["weight_decay"])
    for _ in range(spec["local_epochs"]):
        for batch in part[torch.randperm(len(part))].split(spec["batch_size"]):
            sgd.zero_grad()
            torch.nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            sgd.step()
    content = {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord({"samples": len(part)})}
    return Message(RecordDict(content), reply_to=message)


def main() -> None:
    """Trains a work item and prints one line of JSON."""
    path, threads = contender.start()
    path = str(Path(path).resolve())  # actors run in another folder
    torch.set_num_threads(threads)
    torch.manual_seed(contender.SEED)
    work = contender.load(path)
    model, test = make_model(work.spec["model"]), (torch.from_numpy(work.test_images), torch.from_numpy(work.test_y))
    ends, found = [], []

    def after_round(server_round: int, arrays: ArrayRecord) -> None:
        """Evaluates and takes the time. Flower also calls it before the first round, as round 0."""
        model.load_state_dict(arrays.to_torch_state_dict())
        if server_round and work.spec["evaluate"]:
            found.append(accuracy(model, *test))
        ends.append(time.perf_counter())

    server, client = ServerApp(), ClientApp()
    client.train()(train)

    @server.main()
    def serve(grid: Grid, context: Context) -> None:
        arrays = ArrayRecord(model.state_dict())
        FixedCohorts(path).start(grid, arrays, num_rounds=len(work.cohorts), evaluate_fn=after_round)

    ray = {"num_cpus": threads, "num_gpus": 0, "log_to_driver": False}
    backend = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": ray}
    nodes = max(len(cohort) for cohort in work.cohorts)  # Flower polls all actors, so idle ones would slow it down
    run_simulation(server, client, num_supernodes=nodes, backend_config=backend)
    if len(ends) != len(work.cohorts) + 1:
        sys.exit("flower: the simulation ended early; its message is above")
    round_s = [after - before for before, after in itertools.pairwise(ends)]
    contender.report("flower", "flwr", work, round_s, found[-1] if found else accuracy(model, *test), threads, workers=threads)


if __name__ == "__main__":
    main()
