"""Tables on text and on data with groups: what can be combined, and what is refused in one line."""

import pytest
from small_papers import FULL, Files

from fedrepro.errors import UserError

TEXT = {"dataset": "synthetic_text", "model": "char_lstm", "partition": "by_group(within=iid)", "normalise": "unit"}


def configs(files: Files, **changes) -> list[dict]:
    files.table["columns"][0]["setting"] = TEXT | changes
    key = files.table["columns"][0]["key"]
    made = files.plan(FULL)
    return [made["runs"][cell["run_id"]]["config"] for cell in made["cells"] if cell["column"] == key and cell["run_id"]]


def test_a_column_on_text(files: Files) -> None:
    """Input shape and number of classes follow from data set and model. Each run_id can name a folder."""
    for config in configs(files):
        assert (config["input_shape"], config["classes"]) == ([80], 8)
        assert config["partition"] == "by_group(within=iid)"
    configs(files, partition="by_group(within='shards(per_client=2)')")
    assert not [run_id for run_id in files.plan(FULL)["runs"] if set(run_id) & set("(),' /=")]


def test_a_metric_of_a_group_is_read(files: Files) -> None:
    """A metric of one group is read like any other metric."""
    files.table["columns"][0]["metric"] = {"name": "test_accuracy/witch", "unit": "percent", "description": "of one role"}
    configs(files)
    first = next(cell for cell in files.plan(FULL)["cells"] if cell["column"] == files.table["columns"][0]["key"])
    assert first["metric"]["name"] == "test_accuracy/witch"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"model": "mlp"}, "dataset = 'synthetic_text': is text of 80, but mlp reads images of 1x28x28; change either"),
        ({"dataset": "mnist", "partition": "iid"}, "dataset = 'mnist': is images of 1x28x28, but char_lstm reads text of 80"),
        ({"dataset": "mnist", "model": "mlp"}, r"partition: 'by_group\(within=iid\)': mnist tells no groups"),
        ({"normalise": "centred"}, "normalise: normalise = 'centred': text has no pixels to be scaled"),
        ({"augment": "flip"}, r"augment: augment = 'flip': changes images, and this is text"),
    ],
)
def test_refused(files: Files, changes: dict, line: str) -> None:
    with pytest.raises(UserError, match=line):
        configs(files, **changes)
