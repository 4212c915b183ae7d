"""The face images that this project draws."""

import pytest
import yaml

from fedrepro.data import synthetic_faces as faces
from fedrepro.data.arrays import load_arrays
from fedrepro.data.prepare import prepare
from fedrepro.errors import UserError


def test_as_registered(project):
    """400 and 160 images have the registered sha256. Every image has one to three faces and the label 0."""
    arrays = load_arrays(prepare("synthetic_faces", root=project))
    assert arrays.train_images.shape == (400, 3, 64, 64)
    assert arrays.test_images.shape == (160, 3, 64, 64)
    for boxes, labels in ((arrays.train_boxes, arrays.train_labels), (arrays.test_boxes, arrays.test_labels)):
        counts = (boxes[..., 0] == 0).sum(1)
        assert set(counts.tolist()) == {1, 2, 3}
        assert not labels.any()


def test_another_drawing_is_refused(project, monkeypatch):
    """If the drawing has more noise, the faces are not those of the registry, and `prepare` refuses them."""
    monkeypatch.setattr(faces, "NOISE", faces.NOISE + 1)
    with pytest.raises(UserError, match=r"^synthetic_faces: the faces drawn here are not those of data/registry\.yaml"):
        prepare("synthetic_faces", root=project)


def test_the_registry_needs_a_class_and_takes_no_files(tmp_path):
    """Detection allows a single class; other data sets need more. The entry lists no files."""
    from fedrepro.data.registry import load_registry

    from .conftest import REGISTRY

    content = yaml.safe_load(REGISTRY.read_text())
    path = tmp_path / "registry.yaml"
    for change, line in (({"files": []}, "kind synthetic_faces has no key files"), ({"kind": "digits"}, "use at least 2")):
        path.write_text(yaml.safe_dump({"synthetic_faces": content["synthetic_faces"] | change}))
        with pytest.raises(UserError, match=line):
            load_registry(path)
