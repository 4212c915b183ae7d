"""The plain research loop of published code. It is the baseline of every ratio.

Each client has a DataLoader, which transforms one image at a time, and a copy of the model. Training uses torch.optim; the
server takes a mean over state dicts.

    python -m benchmarks.contenders.naive WORK.npz --threads 1
"""

import argparse
import copy
import json
import time
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset
from torchvision import transforms

from benchmarks.peers.torch_models import make_model


class Images(Dataset):
    """A data set in torchvision's form: it converts and normalises one image at a time."""

    def __init__(self, x: np.ndarray, y: np.ndarray, spec: dict) -> None:
        self.x, self.y = x, y
        self.transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(spec["mean"], spec["std"])])

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, i: int):
        image = self.x[i]
        picture = Image.fromarray(image[0]) if len(image) == 1 else Image.fromarray(image.transpose(1, 2, 0))
        return self.transform(picture), int(self.y[i])


def train_client(model: nn.Module, data: Dataset, spec: dict) -> dict[str, torch.Tensor]:
    """A client's round on its own copy of the model."""
    loader = DataLoader(data, spec["batch_size"], shuffle=True)
    model.train()
    rule = {"lr": spec["client_lr"], "momentum": spec["client_momentum"], "weight_decay": spec["weight_decay"]}
    optimizer = torch.optim.SGD(model.parameters(), **rule)
    device = next(model.parameters()).device
    for _ in range(spec["local_epochs"]):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x.to(device)), y.to(device)).backward()
            optimizer.step()
    return model.state_dict()


@torch.no_grad()
def accuracy(model: nn.Module, data: Dataset) -> float:
    """Percent right on the test set."""
    model.eval()
    device = next(model.parameters()).device
    correct = sum(int((model(x.to(device)).argmax(1).cpu() == y).sum()) for x, y in DataLoader(data, batch_size=1000))
    return 100 * correct / len(data)


def main() -> None:
    """Trains a work item and prints one line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(8)
    with np.load(options.work) as file:
        work = dict(file)  # `file[key]` reads the array from disk each time
    spec, offsets = json.loads(str(work["spec"])), work["offsets"]
    train, test = Images(work["train_x"], work["train_y"], spec), Images(work["test_x"], work["test_y"], spec)
    parts = [work["index"][a:b] for a, b in pairwise(offsets)]
    model, round_s, right = make_model(spec["model"]).to(options.device), [], None
    for cohort in work["cohorts"]:
        began = time.perf_counter()
        cohort = [int(i) for i in cohort if len(parts[i])]
        states = [train_client(copy.deepcopy(model), Subset(train, parts[i]), spec) for i in cohort]
        total = sum(len(parts[i]) for i in cohort)
        shares = [len(parts[i]) / total for i in cohort]
        mean = {key: sum(p * s[key] for p, s in zip(shares, states, strict=True)) for key in states[0]}
        model.load_state_dict(mean)
        if spec["evaluate"]:
            right = accuracy(model, test)
        if options.device == "cuda":
            torch.cuda.synchronize()
        round_s.append(time.perf_counter() - began)
    samples = sum(len(parts[i]) for i in work["cohorts"][-1]) * spec["local_epochs"]
    right = accuracy(model, test) if right is None else right
    found = {"contender": "naive", "version": torch.__version__, "samples_round": samples, "round_s": round_s}
    if options.device == "cuda":
        found["device_peak_mib"] = torch.cuda.max_memory_allocated() / 2**20
    print(json.dumps(found | {"test_accuracy": right, "threads": options.threads, "workers": 1}))


if __name__ == "__main__":
    main()
