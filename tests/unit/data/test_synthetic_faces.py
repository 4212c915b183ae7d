"""The faces that are drawn here."""

import numpy as np
import pytest
import yaml

from fedrepro.data import synthetic_faces as faces
from fedrepro.data.arrays import load_arrays
from fedrepro.data.prepare import prepare
from fedrepro.errors import UserError


@pytest.fixture(scope="module")
def drawn():
    return [faces.draw(number) for number in range(60)]


def test_as_registered(project):
    """400 and 160 images whose content has the registered sha256; every image has one to three faces, and the label 0."""
    arrays = load_arrays(prepare("synthetic_faces", root=project))
    assert arrays.train_images.shape == (400, 3, 64, 64)
    assert arrays.test_images.shape == (160, 3, 64, 64)
    for boxes, labels in ((arrays.train_boxes, arrays.train_labels), (arrays.test_boxes, arrays.test_labels)):
        counts = (boxes[..., 0] == 0).sum(1)
        assert set(counts.tolist()) == {1, 2, 3}
        assert not labels.any()


def test_another_drawing_is_refused(project, monkeypatch):
    """One value of one pixel more noise, and it is not what the registry knows."""
    monkeypatch.setattr(faces, "NOISE", faces.NOISE + 1)
    with pytest.raises(UserError, match=r"^synthetic_faces: the faces drawn here are not those of data/registry\.yaml"):
        prepare("synthetic_faces", root=project)


def test_an_image_depends_on_its_number_alone(drawn):
    pixels, rows = faces.draw(41)
    assert np.array_equal(pixels, drawn[41][0])
    assert rows == drawn[41][1]
    assert not np.array_equal(pixels, drawn[40][0])


def test_faces_lie_within_the_image_apart_and_of_the_promised_size(drawn):
    """Heights of 14 to 34 pixels; of no box is more than a tenth covered by an earlier one."""
    heights = []
    for _, rows in drawn:
        boxes = [((x - w / 2) * 64, (y - h / 2) * 64, (x + w / 2) * 64, (y + h / 2) * 64) for _, x, y, w, h in rows]
        heights += [b - t for _, t, _, b in boxes]
        assert all(min(box) >= -1e-9 and max(box) <= 64 + 1e-9 for box in boxes)
        for later, (x1, y1, x2, y2) in enumerate(boxes):
            for a1, b1, a2, b2 in boxes[:later]:
                common = max(0, min(x2, a2) - max(x1, a1)) * max(0, min(y2, b2) - max(y1, b1))
                assert common <= 0.1 * (x2 - x1) * (y2 - y1) + 1e-9
    assert 14 <= min(heights) < 18
    assert 30 < max(heights) <= 34


def test_a_face_is_where_its_box_is(monkeypatch):
    """Without noise, clutter inside the box's ellipse is gone: pixels there differ from those of the same image without faces,
    and outside of all boxes nothing does."""
    monkeypatch.setattr(faces, "NOISE", 0)
    for number in range(10):
        with_faces, rows = faces.draw(number)
        with monkeypatch.context() as patch:
            patch.setattr(faces, "_face", lambda *_: None)
            without, _ = faces.draw(number)
        changed = (with_faces != without).any(0)
        inside = np.zeros((64, 64), dtype=bool)
        for _, x, y, w, h in rows:
            left, top, right, bottom = ((x - w / 2) * 64, (y - h / 2) * 64, (x + w / 2) * 64, (y + h / 2) * 64)
            where = np.s_[int(top) : int(np.ceil(bottom)), int(left) : int(np.ceil(right))]
            inside[where] = True
            assert changed[where].mean() > 0.6  # an ellipse fills pi / 4 of its box
        assert not changed[~inside].any()


def test_the_registry_needs_a_class_and_takes_no_files(tmp_path):
    """One class is enough for detection, and for nothing else."""
    from fedrepro.data.registry import load_registry

    from .conftest import REGISTRY

    content = yaml.safe_load(REGISTRY.read_text())
    path = tmp_path / "registry.yaml"
    for change, line in (({"files": []}, "kind synthetic_faces has no key files"), ({"kind": "digits"}, "use at least 2")):
        path.write_text(yaml.safe_dump({"synthetic_faces": content["synthetic_faces"] | change}))
        with pytest.raises(UserError, match=line):
            load_registry(path)
