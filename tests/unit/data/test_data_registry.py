"""data/registry.yaml: what it holds, what it refuses, and what its checksum depends on."""

import pytest
import yaml

from fedrepro.data.registry import load_registry
from fedrepro.errors import UserError

from .conftest import REGISTRY


def test_holds_the_three_data_sets():
    """Shapes, classes and scaling are those that the papers' protocols rely on."""
    entries = load_registry(REGISTRY)
    assert {name: (entry.native_shape, entry.classes) for name, entry in entries.items()} == {
        "digits": ((1, 8, 8), 10), "mnist": ((1, 28, 28), 10), "fashion_mnist": ((1, 28, 28), 10)
    }  # fmt: skip
    assert all((entry.normalise.mean, entry.normalise.std) == ((0.0,), (1.0,)) for entry in entries.values())


def test_checksums_are_those_that_torchvision_publishes():
    """File names, MD5 sums and addresses agree with the classes that read the files."""
    from torchvision import datasets

    for name in ("mnist", "fashion_mnist"):
        entry = load_registry(REGISTRY)[name]
        published = getattr(datasets, entry.torchvision_class)
        assert [(file.name, file.md5) for file in entry.files] == published.resources
        assert list(entry.urls) == published.mirrors


def test_unknown_data_set_gets_the_nearest_name():
    with pytest.raises(UserError, match="unknown data set 'mnits'; did you mean 'mnist'"):
        load_registry(REGISTRY)["mnits"]


CHANGES = [
    ({"title": "another"}, True),
    ({"licence": "another"}, True),
    ({"urls": ["https://example.org/mirror/"]}, True),
    ({"class_names": list("abcdefghij")}, True),
    ({"normalise": {"mean": [0.1], "std": [1.0]}}, False),
    ({"native_shape": [1, 14, 14]}, False),
    ({"files": [{"name": "x.gz", "md5": "0" * 32}]}, False),
]


@pytest.mark.parametrize(("change", "same"), CHANGES)
def test_sha_depends_on_what_decides_the_arrays(change, same, tmp_path):
    """A corrected title or a new mirror retrains nothing; another checksum, shape or scaling does."""
    content = yaml.safe_load(REGISTRY.read_text())
    content["mnist"] |= change
    (tmp_path / "registry.yaml").write_text(yaml.safe_dump(content))
    assert (load_registry(tmp_path / "registry.yaml")["mnist"].sha == load_registry(REGISTRY)["mnist"].sha) == same


def test_sha_prefers_the_unpacked_checksum(tmp_path):
    """Packing the published file anew changes its MD5, not the data."""
    content = yaml.safe_load(REGISTRY.read_text())
    content["mnist"]["files"][0]["md5"] = "0" * 32
    (tmp_path / "registry.yaml").write_text(yaml.safe_dump(content))
    assert load_registry(tmp_path / "registry.yaml")["mnist"].sha == load_registry(REGISTRY)["mnist"].sha


REFUSED = [
    ({"licens": "MIT"}, r"mnist: unknown key 'licens'; did you mean 'licence'"),
    ({"normalise": {"mean": [0.0], "sdt": [1.0]}}, r"mnist: normalise: unknown key 'sdt'; did you mean 'std'"),
    ({"normalise": {"mean": [0.0]}}, r"mnist: normalise\.std: Field required"),
    ({"files": [{"nam": "x.gz", "md5": "0" * 32}]}, r"mnist: files\.0: unknown key 'nam'; did you mean 'name'"),
    ({"normalise": {"mean": [0.0], "std": [0.0]}}, r"normalise\.std\.0: .*greater than 0"),
    ({"normalise": {"mean": [0.0, 0.0], "std": [1.0]}}, r"normalise needs 1 mean and std"),
    ({"classes": "many"}, r"mnist: classes: "),
    ({"classes": 9}, r"class_names has 10 names for 9 classes"),
    ({"kind": "idxx"}, r"mnist: kind: .*'digits' or 'idx'"),
    ({"native_shape": [28, 28]}, r"mnist: native_shape"),
    ({"files": []}, r"kind idx needs the key files"),
    ({"files": [{"name": "x.gz"}]}, r"x\.gz has no checksum"),
    ({"files": [{"name": "../x.gz", "md5": "0" * 32}]}, r"files\.0\.name"),
    ({"files": [{"name": "x.gz", "md5": "12"}]}, r"files\.0\.md5"),
    ({"urls": ["ftp://example.org/"]}, r"urls\.0"),
]


@pytest.mark.parametrize(("change", "line"), REFUSED)
def test_refuses_in_one_line(change, line, tmp_path):
    """File, data set and key are named."""
    content = yaml.safe_load(REGISTRY.read_text())
    content["mnist"] |= change
    path = tmp_path / "registry.yaml"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(UserError, match=line) as caught:
        load_registry(path)
    assert str(caught.value).startswith(f"{path}: mnist: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"), [("a: [", "not valid YAML"), ("", "expected data sets"), ("a: 3", "a: expected keys")]
)
def test_refuses_what_is_no_registry(text, line, tmp_path):
    path = tmp_path / "registry.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=line) as caught:
        load_registry(path)
    assert "\n" not in str(caught.value)


def test_missing_registry_says_where_to_stand(tmp_path):
    with pytest.raises(UserError, match=r"registry\.yaml: no such file; run the command in the project's root"):
        load_registry(tmp_path / "registry.yaml")
