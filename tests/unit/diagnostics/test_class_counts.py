"""Training samples by client and class."""

from fedrepro.diagnostics.diagnostic import make
from tests import toy
from tests.unit.diagnostics.test_client_distance import models


def test_counts_are_those_of_what_clients_train_on() -> None:
    """All training samples of a client count once, under their class. A client without any is left out."""
    task = toy.make_task()
    values = list(make("class_counts").measure(models(), lambda: task))
    for client, index in enumerate(task.client_index):
        own = {one.y: one.value for one in values if one.x == client}
        labels = task.train.y[index].tolist()
        assert own == {label: labels.count(label) for label in range(task.spec.classes) if labels}
    assert {one.metric for one in values} == {"class_counts"}
