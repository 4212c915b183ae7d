"""How MLflow's UI shows an experiment: as model training, the means over seeds, accuracy in front. Pure.

MLflow keeps saved views of an experiment in its tags; its menu "Views" lists them. What a browser shows at first is not in the
database but in the browser: see `fedrepro.tracking.start`.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from fedrepro.files import canonical_hash
from fedrepro.tracking.content import COST, LEVEL, LIVE, ORDER, SPREAD, TABLE, TRIES, USUAL
from fedrepro.tracking.planned_runs import PlannedRun

# Names of the front end of MLflow 3.17. Another version that has other ones shows its own defaults.
BROWSER = {
    "mlflow.workflowType_v1": '"machine_learning"',  # "Model training" instead of "GenAI"
    "mlflow.assistant.fab.autoOpenedOnFirstLoad_v1": "true",  # the chat has been seen
}
_PAGE = 'MLflowLocalStorage-1.1-ExperimentPage-["{}"]-ReactComponentState'
SAVED = "mlflow.sharedViewState.fedrepro-"  # a tag for each saved view of ours
_NAMED = 6  # metrics, in a description
_FIRST = 10  # runs whose curves are drawn, unless one asks for others
ONLY_MEANS, CANDIDATES = f"tags.{LEVEL} = 'mean'", f"tags.{TRIES} != ''"


def looks(planned_runs: Iterable[PlannedRun]) -> dict[str, str]:
    """Tags of the experiment of these runs: what it is, and a saved view of every setting, the first table's first."""
    planned_runs = sorted((planned for planned in planned_runs if planned.name.method), key=lambda planned: planned.place)
    readings = [reading for planned in planned_runs for reading in planned.reported]
    metrics = list(dict.fromkeys(reading.metric.removeprefix("test_") for reading in readings))
    settings = list(dict.fromkeys(planned.name.setting or USUAL for planned in planned_runs if not planned.trial))
    saved = {"All runs": ONLY_MEANS} | {setting: f"{ONLY_MEANS} and tags.setting = '{setting}'" for setting in settings}
    saved |= {"Candidates of tuning": CANDIDATES} if any(planned.tried for planned in planned_runs) else {}
    saved |= {"Seeds and trials below their means": ""}
    tags = {
        "mlflow.note.content": _note(planned_runs),
        "mlflow.experimentKind": "custom_model_development",
        "mlflow.experiment.primaryMetric.name": f"{[*metrics, 'accuracy'][0]}/{TABLE}",
    }
    for age, (name, search) in zip(range(len(saved), 0, -1), saved.items(), strict=True):  # MLflow lists the newest first
        view = {"name": name, "createdAt": age, "updatedAt": age, "state": json.dumps(_state(metrics, search))}
        tags[SAVED + canonical_hash(name, 8)] = json.dumps(view, ensure_ascii=False)
    return tags


def _note(planned_runs: Sequence[PlannedRun]) -> str:
    """The description of the experiment: what its numbers are."""
    places = sorted({f"papers/{planned.paper} at scale {planned.scale}" for planned in planned_runs if planned.scale})
    whose = f"Runs of {', '.join(places)}"
    seeds = "the seeds of the first table that shows it. Its seeds, those of other tables too,"
    read_as = "what that table reads, over the rounds that it names"
    if not places:
        whose, seeds = "Runs that `fedrepro run` trained and no table here shows", "its seeds, which"
        read_as = "the value after the last round"
    read = {
        f"{r.metric.removeprefix('test_')}/{TABLE}": r.over(planned.run.config)
        for planned in planned_runs
        for r in planned.reported
    }
    numbers = "; ".join(f"`{name}`, for example: {words}" for name, words in [*read.items()][:_NAMED])
    return (
        f"{whose}. A line is the mean of one method in one setting over {seeds} lie below.\n\n"
        f"`/{TABLE}` is {read_as} ({numbers}). `/{SPREAD}` is its standard "
        "deviation over seeds, `/curve` has every round. Accuracies and errors are in percent.\n\n"
        f"`{COST}wall_s`: seconds of a seed. `{COST}peak_mib`: its memory. `{COST}mb_sent`: MB between server and clients."
    )


def address(experiment: str | None) -> str:
    """The part of the UI's address after `#`: the charts of an experiment, or the list of experiments."""
    training = "workflowType=machine_learning"
    if experiment is None:
        return f"/experiments?{training}"
    return f"/experiments/{quote(experiment)}/runs?compareRunsMode=CHART&{training}"


def page(experiment: str, runs: Sequence[Any]) -> dict[str, str]:
    """{key, version, state} of what a browser shows of an experiment at first: all means, and the curves of one setting.

    The version changes with fedrepro's page and the tables' metrics; the browser then replaces the state that it has stored.
    """
    means = [run for run in runs if run.data.tags.get(LEVEL) == "mean"]
    means.sort(key=lambda run: (LIVE not in run.data.tags, run.data.tags[ORDER]))
    names = dict.fromkeys(name for run in means for name in run.data.metrics if name.endswith(f"/{TABLE}"))
    metrics = [name.removesuffix(f"/{TABLE}") for name in names]
    state = _state(metrics, ONLY_MEANS if means else "")  # before the first seed has finished: those that train
    other_runs = [run for run in means[:_FIRST] if run.data.tags["setting"] != means[0].data.tags["setting"]]
    hidden = {"runsVisibilityMap": {run.info.run_id: False for run in other_runs}}
    return {"key": _PAGE.format(experiment), "version": canonical_hash(state, 8), "state": json.dumps(state | hidden)}


def _state(metrics: Sequence[str], search: str) -> dict[str, Any]:
    numbers = [f"{metric}/{kind}" for metric in metrics for kind in (TABLE, SPREAD)]
    columns = [f"metrics.`{name}`" for name in [*numbers, f"{COST}wall_s", f"{COST}mb_sent"]]
    return {
        "searchFilter": search,
        "orderByKey": f"tags.`{ORDER}`" if search else "attributes.start_time",  # the one order in which MLflow nests runs
        "orderByAsc": True,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "modelVersionFilter": "All Runs",
        "datasetsFilter": [],
        "selectedColumns": [*columns, f"tags.`{TRIES}`" if search == CANDIDATES else "params.`dataset`"],
        "runsHiddenMode": "FIRST_10_RUNS",
        "runsVisibilityMap": {},
        "runsExpanded": {},
        "runsPinned": [],
        "runsHidden": [],
        "viewMaximized": False,
        "runListHidden": False,
        "isAccordionReordered": False,
        "useGroupedValuesInCharts": True,
        "hideEmptyCharts": True,
        "groupBy": None,
        "groupsExpanded": {},
        "autoRefreshEnabled": True,
        "globalLineChartConfig": {"xAxisKey": "step", "lineSmoothness": 0, "selectedXAxisMetricKey": ""},
    }
