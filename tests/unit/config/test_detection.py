"""Tables of detectors: data sets with boxes need detectors, and a budget may choose another data set."""

import pytest
from small_papers import FULL, Files, run_of, sourced

from fedrepro.errors import UserError


def detect(files: Files) -> None:
    """Makes the first column train a detector on drawn faces, and removes the row that needs a proxy set."""
    files.table["columns"][0]["setting"] = {"dataset": "synthetic_faces", "model": "grid_detector", "partition": "iid"}
    files.table["rows"] = [row for row in files.table["rows"] if row["key"] != "fedlaw"]


def test_a_detector_on_boxes(files: Files) -> None:
    """The input shape is the model's, and the number of classes (one) is the registry's."""
    detect(files)
    config = run_of(files.plan(FULL), "fedavg")["config"]
    assert (config["dataset"], config["classes"], config["input_shape"]) == ("synthetic_faces", 1, [3, 64, 64])


def test_a_scales_data_set_without_boxes_is_refused_and_a_budget_helps(files: Files) -> None:
    """Scale demo sets digits, which gives one line. A budget of the table sets faces again and is named as the source."""
    detect(files)
    with pytest.raises(
        UserError, match=r"^papers/scales\.yaml: demo: settings\.dataset = 'digits': has class labels, but grid_detec"
    ):
        files.plan({"scale": "demo"})
    files.table["budget"] = {"demo": {"note": "drawn faces", "settings": {"dataset": "synthetic_faces", "clients": 4}}}
    made = files.plan({"scale": "demo"})
    run = run_of(made, "fedavg")
    assert (run["config"]["dataset"], run["config"]["clients"], run["config"]["rounds"]) == ("synthetic_faces", 4, 10)
    assert run["sources"]["clients"] == "budget of the table at scale demo"
    assert made["scale_note"] == "drawn faces"


def test_a_classifier_on_boxes_is_refused(files: Files) -> None:
    detect(files)
    files.table["columns"][0]["setting"]["model"] = "mlp"
    with pytest.raises(UserError, match=r"dataset = 'synthetic_faces': has boxes, but mlp learns from class labels"):
        files.plan(FULL)


def test_what_learns_on_a_proxy_set_is_refused(files: Files) -> None:
    """The table is refused while it is read, not hours later."""
    files.table["columns"][0]["setting"] = {"dataset": "synthetic_faces", "model": "grid_detector", "partition": "iid"}
    with pytest.raises(
        UserError, match=r"table1\.yaml: rows: fedlaw: FedLAW learns on a proxy set of class labels, but grid_det"
    ):
        files.plan(FULL)


def test_a_budgets_settings_are_checked(files: Files) -> None:
    """An unknown setting is one line, as everywhere else."""
    files.table["budget"] = {"full": {"note": "n", "settings": {"round": 5}}}
    with pytest.raises(
        UserError, match=r"table1\.yaml: budget\.full\.settings: unknown setting 'round'; did you mean 'rounds'"
    ):
        files.plan(FULL)


def test_settings_of_a_paper_for_faces(files: Files) -> None:
    """A stand-in for photographs takes the paper's settings for photographs."""
    detect(files)
    files.paper["stand_ins"] = {"synthetic_faces": "human_faces"}
    files.paper["datasets"]["human_faces"] = sourced(clients=4)
    files.table["stand_in"] = "Drawn faces."
    assert run_of(files.plan(FULL), "fedavg")["config"]["clients"] == 4
