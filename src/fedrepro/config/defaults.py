"""What a run takes where neither the command, a paper nor the caller says anything. Our choices; needs no schema library."""

from typing import Any

# Plain FedAvg as people try it first: everybody takes part, one local epoch of SGD, nothing held back.
SETTINGS: dict[str, Any] = {
    "dataset": "digits",
    "model": "mlp",
    "partition": "iid",
    "clients": 10,
    "participation": 1.0,
    "local_validation": 0.0,
    "proxy_per_class": 0,
    "proxy_batch_size": 128,
    "normalise": "unit",
    "rounds": 10,
    "local_epochs": 1,
    "batch_size": 64,
    "client_lr": 0.05,
    "client_lr_decay": 1.0,
    "client_momentum": 0.0,
    "keep_client_momentum": False,
    "weight_decay": 0.0,
    "average_last": 1,
}
SOURCE = "default of fedrepro"
