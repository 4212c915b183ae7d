"""What runs are called in MLflow: the method, then what tells its runs in one experiment apart. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fedrepro.config.plan import Run
from fedrepro.config.reading import EDITED
from fedrepro.config.run_differences import argument_text
from fedrepro.grouping import grouped
from fedrepro.looks import look_of, name_of
from fedrepro.registry import Call, named_arguments, parse

MODELS = {"mlp": "MLP", "mlp_colour": "MLP", "two_nn": "2NN", "lenet": "LeNet", "grid_detector": "detector"}
MODELS |= dict.fromkeys(("mnist_cnn", "simple_cnn", "fedgh_cnn", "fedgh_cnn_relu", "mcmahan_cifar", "reddi_emnist"), "CNN")
MODELS |= dict.fromkeys(("fedima_cnn_fmnist", "fedima_cnn_cifar", "fedima_cnn_digits"), "CNN")
MODELS |= {"fedima_vgg11": "VGG", "fedima_alexnet": "AlexNet", "fedima_cnn_64px": "CNN, 64 pixels"}
MODELS |= {"alexnet_cifar": "AlexNet", "wrn56_4": "WRN", "densenet121": "DenseNet"}
MODELS |= dict.fromkeys(("resnet8", "resnet18", "resnet20", "resnet56", "resnet110", "fedima_resnet18"), "ResNet")
# What tells runs apart is looked for here first, then in all other settings.
FACETS = ("kind of model", "partition", "dataset", "model", "scheme", "clients", "participation", "local_epochs", "batch_size")
SHORT = {"local_epochs": "E", "batch_size": "B", "client_lr": "lr"}
USUAL = 2 / 3  # share of the runs; names leave out a value that this share has


class Name(NamedTuple):
    """`FedProx`, `mu=0.1` and `MLP α0.1`. Arguments and setting are empty if the run has what most runs have."""

    method: str
    arguments: str = ""
    setting: str = ""

    def __str__(self) -> str:
        """The UI cuts it after some 22 characters."""
        return " ".join(filter(None, self))


def run_names(runs: Mapping[str, tuple[Run, list[str]]]) -> dict[str, Name]:
    """run_id -> a name that no other of these runs has. `runs`: run_id -> (entry of a plan's runs, its labels in tables).

    A setting is written the same for all methods. A name always has what params.yaml changes.
    """
    methods, all_alike = _methods(runs), dict.fromkeys(runs, "")
    values = {run_id: _settings(run) for run_id, (run, _) in runs.items()}
    settings = _distinguish(values, _edited(runs, "sources"), all_alike, methods, all_alike)
    values = {
        run_id: {key: _setting_text(key, value) for key, value in named_arguments(run.method).items()}
        for run_id, (run, _) in runs.items()
    }
    cells = {run_id: f"{methods[run_id]}, {settings[run_id]}" for run_id in runs}
    arguments = _distinguish(values, _edited(runs, "argument_sources"), cells, methods, methods)
    names = {run_id: Name(methods[run_id], arguments[run_id], settings[run_id]) for run_id in runs}
    names |= {run_id: name._replace(arguments=_unshared_parts(run_id, twins, runs)) for run_id, name, twins in _twins(names)}
    return names | {run_id: name._replace(arguments=run_id[-8:]) for run_id, name, _ in _twins(names)}


def _twins(names: Mapping[str, Name]) -> list[tuple[str, Name, list[str]]]:
    """Returns (run_id, its name, all runs of this name) of each run whose name another run has."""
    alike = _grouped({run_id: str(name) for run_id, name in names.items()})
    return [(run_id, name, alike[str(name)]) for run_id, name in names.items() if len(alike[str(name)]) > 1]


def _unshared_parts(run_id: str, twins: Sequence[str], runs: Mapping[str, tuple[Run, list[str]]]) -> str:
    """Returns the parts of a method that not all of its twins have."""
    parts = {twin: [call.name for call in runs[twin][0].calls] for twin in twins}
    shared = set.intersection(*map(set, parts.values()))
    return " ".join(part for part in parts[run_id] if part not in shared)


def tried_values(values: Mapping[str, Any], candidates: Sequence[Mapping[str, Any]]) -> str:
    """Returns the values in which a candidate differs from the others, `lr=0.03`."""
    differ = [key for key in values if any(other[key] != values[key] for other in candidates)]
    return " ".join(_setting_text(key, values[key]) for key in differ or values)


def _methods(runs: Mapping[str, tuple[Run, list[str]]]) -> dict[str, str]:
    """Returns the method's name in tables; else the name of another run with the same parts; else the run's own label."""
    parts = {run_id: tuple(call.name for call in run.calls) for run_id, (run, _) in runs.items()}
    names_in_tables = {
        run_id: next((name for label in labels if look_of(name := name_of(label))), "") for run_id, (_, labels) in runs.items()
    }
    by_parts = {parts[run_id]: name for run_id, name in names_in_tables.items() if name}
    shortest_labels = {run_id: min(labels or [run.method_label], key=len) for run_id, (run, labels) in runs.items()}
    return {run_id: names_in_tables[run_id] or by_parts.get(parts[run_id]) or shortest_labels[run_id] for run_id in runs}


def _distinguish(
    values: Mapping[str, Mapping[str, str]],
    always: Mapping[str, set[str]],
    groups: Mapping[str, str],
    methods: Mapping[str, str],
    pools: Mapping[str, str],
) -> dict[str, str]:
    """Returns run_id -> the values that differ between runs of one group and method, and the values of the keys in `always`.

    Names leave out one value of each group: the one that most runs of its pool have, or else most runs of the group. A
    partition is in all names if a pool has several: they are what runs are compared over.
    """
    texts_by_run: dict[str, list[str]] = {run_id: [] for run_id in values}
    groups = dict(groups)
    for key in dict.fromkeys([*FACETS, *(key for run_values in values.values() for key in run_values)]):
        value = {run_id: run_values.get(key, "") for run_id, run_values in values.items()}
        usual = {pool: _usual(value[run_id] for run_id in members) for pool, members in _grouped(pools).items()}
        varied = {pool for pool, members in _grouped(pools).items() if len({value[run_id] for run_id in members}) > 1}
        for members in _grouped(groups).values():
            pairs = {(methods[run_id], value[run_id]) for run_id in members}
            split = len(pairs) > len({method for method, _ in pairs})
            common = usual[pools[members[0]]]
            omitted = common if common in {value[run_id] for run_id in members} else _usual(value[run_id] for run_id in members)
            for run_id in members:
                differs = pools[run_id] in varied if key == "partition" else split and value[run_id] != omitted
                if value[run_id] and (differs or key in always[run_id]):
                    texts_by_run[run_id].append(value[run_id])
                groups[run_id] += f", {value[run_id]}" if split else ""
    return {run_id: " ".join(texts) for run_id, texts in texts_by_run.items()}


def _usual(values: Iterable[str]) -> str | None:
    """Returns the value that most of them have; None if no value is that frequent."""
    values = list(values)
    value, times = Counter(values).most_common(1)[0]
    return value if times >= USUAL * len(values) else None


def _grouped(groups: Mapping[str, str]) -> dict[str, list[str]]:
    return grouped((group, run_id) for run_id, group in groups.items())


def _settings(run: Run) -> dict[str, str]:
    """Returns the settings as names have them. A partition gives its arguments first, then its scheme."""
    config = {key: _setting_text(key, value) for key, value in run.config.items() if key not in ("method", "dataset_sha")}
    (call,) = parse(run.config["partition"])
    kind = MODELS.get(run.config["model"], run.config["model"])
    scheme = call.name.removeprefix("dirichlet_")
    return config | {"kind of model": kind, "partition": _partition(call), "scheme": scheme, "all": run.config["partition"]}


def _edited(runs: Mapping[str, tuple[Run, list[str]]], sources: str) -> dict[str, set[str]]:
    return {
        run_id: {key for key, source in getattr(run, sources).items() if source == EDITED and key not in ("model", "partition")}
        for run_id, (run, _) in runs.items()
    }


def _partition(call: Call) -> str:
    """`α0.1` of every Dirichlet scheme; `shards 2`."""
    values = [argument_text(value) for value in call.arguments.values() if not isinstance(value, bool)]
    if call.name.startswith("dirichlet"):
        return f"α{values[0]}"
    if call.name == "log_normal_dirichlet":
        return f"σ{values[0]} α{values[1]}"
    return f"{' '.join([call.name, *values])[:20]}…" if len(" ".join(values)) > 12 else " ".join([call.name, *values])


def _setting_text(key: str, value: Any) -> str:
    if key in ("dataset", "model"):
        return str(value)
    name = key.rpartition(".")[2]
    return f"{argument_text(value)} clients" if key == "clients" else f"{SHORT.get(name, name)}={argument_text(value)}"
