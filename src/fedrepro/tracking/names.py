"""What runs are called in MLflow: method, model, partition, and only then what else tells two runs apart. Pure."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from fedrepro.config.plan import Run
from fedrepro.config.reading import EDITED
from fedrepro.registry import named_arguments, parse

MODELS = {"mlp": "MLP", "mlp_colour": "MLP", "two_nn": "2NN", "lenet": "LeNet", "grid_detector": "detector"}
MODELS |= dict.fromkeys(("mnist_cnn", "simple_cnn", "fedgh_cnn", "fedgh_cnn_relu", "mcmahan_cifar", "reddi_emnist"), "CNN")
MODELS |= dict.fromkeys(("fedima_cnn_fmnist", "fedima_cnn_cifar", "fedima_cnn_digits"), "CNN")
MODELS |= {"fedima_vgg11": "VGG", "fedima_alexnet": "AlexNet", "fedima_alexnet_64px": "AlexNet, 64 pixels"}
MODELS |= dict.fromkeys(("resnet8", "resnet18", "resnet20", "fedima_resnet18"), "ResNet")
# What tells runs of one name apart is looked for here first, then in all settings and arguments.
FACETS = ("dataset", "model", "clients", "participation", "partition", "rounds", "local_epochs")


class Name(NamedTuple):
    """`FedProx mu=0.1` and `MLP α0.1`: the UI cuts names after some 22 characters."""

    method: str
    setting: str

    def __str__(self) -> str:
        return f"{self.method} {self.setting}"


def run_names(runs: Mapping[str, tuple[Run, list[str]]]) -> dict[str, Name]:
    """run_id -> a name that no other of these runs has. `runs`: run_id -> (entry of a plan's runs, its labels in tables).

    Of runs that would have one name, those say a setting or an argument that have another value than most of all runs.
    """
    found = {run_id: Name(_method(run, labels), _setting(run)) for run_id, (run, labels) in runs.items()}
    values = {run_id: _values(run) for run_id, (run, _) in runs.items()}
    known = list(dict.fromkeys(key for one in values.values() for key in one))
    for key in [*FACETS, *(key for key in known if key not in FACETS)]:
        twins = _twins(found)
        usual = Counter(one.get(key) for one in values.values()).most_common(1) if twins else []
        for run_id, name in twins.items():
            value = values[run_id].get(key)
            if value is not None and value != usual[0][0]:
                found[run_id] = _longer(name, key, value)
    return found | {run_id: Name(name.method, f"{name.setting} · {run_id[-8:]}") for run_id, name in _twins(found).items()}


def _twins(names: Mapping[str, Name]) -> dict[str, Name]:
    times = Counter(names.values())
    return {run_id: name for run_id, name in names.items() if times[name] > 1}


def _values(run: Run) -> dict[str, str]:
    """Every setting and argument as a name says it; of the partition its scheme, whose arguments names have anyway."""
    config = {key: value for key, value in run.config.items() if key != "method"}
    config["partition"] = parse(config["partition"])[0].name.removeprefix("dirichlet_")
    arguments = {key: _argument(key, value) for key, value in named_arguments(run.method).items()}
    return {key: _said(key, value) for key, value in config.items()} | arguments


def _longer(name: Name, key: str, said: str) -> Name:
    """An argument belongs to the method, a setting to the setting."""
    return Name(f"{name.method} {said}", name.setting) if "." in key else Name(name.method, f"{name.setting} · {said}")


def _method(run: Run, labels: list[str]) -> str:
    """The shortest that a table calls it, and every argument that params.yaml changes."""
    values = named_arguments(run.method)
    edited = [key for key, source in run.argument_sources.items() if source == EDITED and key in values]
    return " ".join([min(labels, key=len), *(_argument(key, values[key]) for key in edited)])


def _setting(run: Run) -> str:
    """Model and partition, and every setting that params.yaml changes."""
    config = run.config
    edited = [key for key, source in run.sources.items() if source == EDITED and key not in ("model", "partition")]
    said = [_said(key, config[key]) for key in edited if key in config]
    return " · ".join([f"{MODELS.get(config['model'], config['model'])} {_partition(config['partition'])}", *said])


def _partition(scheme: str) -> str:
    """`α0.1` of every Dirichlet scheme; `shards 2`."""
    (call,) = parse(scheme)
    if call.name.startswith("dirichlet"):
        return f"α{_bare(next(iter(call.arguments.values())))}"
    return " ".join([call.name, *(_bare(value) for value in call.arguments.values())])


def _argument(key: str, value: Any) -> str:
    return f"{key.rpartition('.')[2]}={_bare(value)}"


def _said(key: str, value: Any) -> str:
    if key in ("dataset", "model", "partition"):
        return str(value)
    return f"{_bare(value)} clients" if key == "clients" else f"{key} {_bare(value)}"


def _bare(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
