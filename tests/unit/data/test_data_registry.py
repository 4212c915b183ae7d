"""data/registry.yaml: its content, the mistakes that it refuses, and what its checksum depends on."""

import pytest
import yaml

from fedrepro.data.registry import KEYS_OF_KIND, Entry, SourceFile, load_registry
from fedrepro.errors import UserError
from fedrepro.files import read_yaml
from tests.helpers.one_line import one_line

from .conftest import REGISTRY


def test_checksums_are_those_that_torchvision_publishes():
    """File names, MD5 sums, class names and addresses agree with the classes that read the files."""
    from torchvision import datasets

    entries = load_registry(REGISTRY)
    for name in ("mnist", "fashion_mnist"):
        published = getattr(datasets, entries[name].torchvision_class)
        assert [(file.name, file.md5) for file in entries[name].files] == published.resources
        assert list(entries[name].urls) == published.mirrors
    for name in ("cifar10", "cifar100"):
        published = getattr(datasets, entries[name].torchvision_class)
        (file,) = entries[name].files
        assert (file.name, file.md5, f"{entries[name].urls[0]}{file.name}") == (
            published.filename, published.tgz_md5, published.url
        )  # fmt: skip
        listed = [*published.train_list, *published.test_list, [published.meta["filename"], published.meta["md5"]]]
        assert file.members == {f"{published.base_folder}/{member}": md5 for member, md5 in listed}
        assert list(entries[name].class_names) == sorted(entries[name].class_names)  # as published
    emnist = entries["emnist-byclass"]
    assert (f"{emnist.urls[0]}{emnist.files[0].name}", emnist.files[0].md5) == (datasets.EMNIST.url, datasets.EMNIST.md5)
    assert list(emnist.class_names) == datasets.EMNIST.classes_split_dict["byclass"]
    assert entries["emnist-writers"].class_names == emnist.class_names
    digit_sums = {file.name: file.md5 for file in entries["digit_five"].files}
    usps, svhn = datasets.USPS.split_list, datasets.SVHN.split_list
    for url, name, md5 in (*usps.values(), svhn["train"], svhn["test"]):
        assert digit_sums[name] == md5
        assert url.removesuffix(name) in entries["digit_five"].urls
    assert {file.name: file.md5 for file in entries["mnist"].files}.items() <= digit_sums.items()
    assert entries["cinic10"].class_names == entries["cifar10"].class_names


def test_unknown_data_set_gets_the_nearest_name():
    with pytest.raises(UserError, match="unknown data set 'mnits'; did you mean 'mnist'"):
        load_registry(REGISTRY)["mnits"]


def test_same_as_names_another_entry(tmp_path):
    content = yaml.safe_load(REGISTRY.read_text())
    content["cifar10-lossless"]["same_as"] = "cifar11"
    (tmp_path / "registry.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(UserError, match="cifar10-lossless: same_as: unknown data set 'cifar11'; did you mean 'cifar10'"):
        load_registry(tmp_path / "registry.yaml")


CHANGES = [
    ({"same_as": "mnist"}, True),
    ({"title": "another"}, True),
    ({"urls": ["https://example.org/mirror/"]}, True),
    ({"class_names": list("abcdefghij")}, True),
    ({"channel_mean": [0.2], "channel_std": [0.4]}, True),
    ({"images": [6, 3]}, True),
    ({"torchvision_class": "FashionMNIST"}, False),
    ({"native_shape": [1, 14, 14]}, False),
    ({"files": [{"name": "x.gz", "md5": "0" * 32}]}, False),
]


@pytest.mark.parametrize(("change", "same"), CHANGES)
def test_sha_depends_on_what_decides_the_arrays(change, same, tmp_path):
    """A corrected title or a new mirror keeps the sha. Another checksum, shape or reader changes it."""
    content = yaml.safe_load(REGISTRY.read_text())
    content["mnist"] |= change
    (tmp_path / "registry.yaml").write_text(yaml.safe_dump(content))
    assert (load_registry(tmp_path / "registry.yaml")["mnist"].sha == load_registry(REGISTRY)["mnist"].sha) == same


def test_sha_prefers_the_unpacked_checksum(tmp_path):
    """A file that is packed again has another MD5, but the data are the same."""
    content = yaml.safe_load(REGISTRY.read_text())
    content["mnist"]["files"][0]["md5"] = "0" * 32
    (tmp_path / "registry.yaml").write_text(yaml.safe_dump(content))
    assert load_registry(tmp_path / "registry.yaml")["mnist"].sha == load_registry(REGISTRY)["mnist"].sha


REFUSED = [
    ({"licens": "MIT"}, r"mnist: unknown key 'licens'; did you mean 'licence'"),
    ({"files": [{"nam": "x.gz", "md5": "0" * 32}]}, r"mnist: files: entry 1: unknown key 'nam'; did you mean 'name'"),
    ({"channel_std": [0.0]}, r"channel_std: entry 1 = .*greater than 0"),
    ({"channel_mean": [0.1, 0.2], "channel_std": [1.0]}, r"channel_mean and channel_std need 1 values each"),
    ({"class_names": ["a"] * 10}, r"class_names has a name twice"),
    ({"class_names": []}, r"kind idx needs the key class_names"),
    ({"torchvision_class": "CIFAR10"}, r"torchvision_class 'CIFAR10' does not read kind idx; use MNIST or FashionMNIST"),
    ({"label_column": "label"}, r"kind idx has no key label_column; take it out"),
    ({"kind": "cifar", "torchvision_class": "CIFAR10"}, r"kind cifar is one archive, found 4 files"),
    ({"kind": "cifar", "torchvision_class": "CIFAR10", "files": [{"name": "x.gz", "md5": "0" * 32}]}, r"needs members with"),
    ({"kind": "cifar", "torchvision_class": "CIFAR10", "files": [{"name": "x.gz", "trust_first_download": True}]}, r"members"),
    ({"files": [{"name": "x.gz", "md5": "0" * 32, "trust_first_download": True}]}, r"x\.gz has a checksum; take trust_first"),
    ({"files": [{"name": "x.gz", "md5": "0" * 32, "split": "train"}]}, r"kind idx has no key split"),
    ({"channel_mean": [33.3]}, r"channel_mean: entry 1 = .*less than or equal to 1"),
    ({"files": [{"name": "x.gz", "md5": "12"}]}, r"files: entry 1 \(x.gz\): md5"),
    ({"classes": 9}, r"class_names has 10 names for 9 classes"),
    ({"kind": "idxx"}, r"mnist: kind = 'idxx': unknown kind 'idxx'; did you mean 'idx'\? Known: digits, idx, parquet"),
    ({"native_shape": [28, 28]}, r"mnist: native_shape"),
    ({"files": []}, r"kind idx needs the key files"),
    ({"files": [{"name": "x.gz"}]}, r"x\.gz has no checksum"),
    ({"files": [{"name": "../x.gz", "md5": "0" * 32}]}, r"files: entry 1 \(../x.gz\): name"),
    ({"files": [{"name": "x.gz", "md5": "0" * 32, "in_mirror": "../x.gz"}]}, r"files: entry 1 \(x.gz\): in_mirror"),
    ({"kind": "plays"}, r"mnist: kind plays needs the key speakers"),
    ({"urls": ["ftp://example.org/"]}, r"urls: entry 1"),
]


@pytest.mark.parametrize(("change", "line"), REFUSED)
def test_refuses_in_one_line(change, line, tmp_path):
    """The line names file, data set and key."""
    content = yaml.safe_load(REGISTRY.read_text())
    content["mnist"] |= change
    path = tmp_path / "registry.yaml"
    path.write_text(yaml.safe_dump(content))
    with one_line(line) as caught:
        load_registry(path)
    assert str(caught.value).startswith(f"{path}: mnist: ")


@pytest.mark.parametrize(
    ("name", "change", "line"),
    [
        ("cifar10-jpeg", {"files": [{"name": "x", "md5": "0" * 32}]}, "each needs split: train or split: test, and both must"),
        ("cifar10-jpeg", {"files": [{"name": "x", "md5": "0" * 32, "split": "train"}]}, "and both must occur"),
        (
            "cifar10-jpeg",
            {"files": [{"name": "x", "md5": "0" * 32, "split": "val"}]},
            r"files: entry 1 \(x\): split = .*'train' or 'test'",
        ),
        ("pacs", {"domains": ["photo", "photo"]}, "domains has a name twice"),
        ("pacs", {"native_shape": [4, 8, 8]}, "images of kind folders have 1 or 3 channels, not 4"),
        ("pacs", {"test_share": 1}, "test_share = .*less than 1"),
        ("pacs", {"test_share": 0}, "test_share = .*greater than 0"),
    ],
)
def test_refuses_keys_of_single_kinds(name, change, line, tmp_path):
    content = yaml.safe_load(REGISTRY.read_text())
    content[name] |= change
    path = tmp_path / "registry.yaml"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(UserError, match=f"{name}: .*{line}"):
        load_registry(path)


KIND_CHANGES = [
    ("cifar10", {"title": "x"}, True),
    (
        "cifar10",
        {"files": [{"name": "cifar-10-python.tar.gz", "members": {"cifar-10-batches-py/test_batch": "0" * 32}}]},
        False,
    ),
    ("cifar10-jpeg", {"label_column": "other"}, False),
    ("pacs", {"test_share": 0.2}, False),
    ("pacs", {"domains": ["sketch", "photo"]}, False),
    ("pacs", {"class_names": ["elephant", "dog", "giraffe", "guitar", "horse", "house", "person"]}, False),  # makes the labels
]


@pytest.mark.parametrize(("name", "change", "same"), KIND_CHANGES)
def test_sha_knows_the_keys_of_each_kind(name, change, same, tmp_path):
    content = yaml.safe_load(REGISTRY.read_text())
    content[name] |= change
    (tmp_path / "registry.yaml").write_text(yaml.safe_dump(content))
    assert (load_registry(tmp_path / "registry.yaml")[name].sha == load_registry(REGISTRY)[name].sha) == same


@pytest.mark.parametrize("swap", ["splits", "order"])
def test_the_files_of_a_data_set_do_not_swap_unnoticed(swap, tmp_path):
    """If training and test files are exchanged, or the parts of a split change their order, the sha changes with the arrays."""
    content = yaml.safe_load(REGISTRY.read_text())
    files = content["cifar10-jpeg"]["files"]
    if swap == "splits":
        files[0]["split"], files[1]["split"] = files[1]["split"], files[0]["split"]
    else:
        files.reverse()
    (tmp_path / "registry.yaml").write_text(yaml.safe_dump(content))
    assert load_registry(tmp_path / "registry.yaml")["cifar10-jpeg"].sha != load_registry(REGISTRY)["cifar10-jpeg"].sha


def test_numbers_as_yaml_1_2_has_them(tmp_path):
    """Numbers may have an exponent and no point. A quoted number is text, and so is a hash."""
    path = tmp_path / "any.yaml"
    path.write_text("{a: 1e-3, b: [5E2, -2.e+1, .5e0], c: '1e-3', d: 1e-3x, e: 1.5, f: 2039e827, g: 1234567e}")
    assert read_yaml(path) == {
        "a": 0.001,
        "b": [500.0, -20.0, 0.5],
        "c": "1e-3",
        "d": "1e-3x",
        "e": 1.5,
        "f": "2039e827",
        "g": "1234567e",
    }


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("mnist: 3\na: [", "not valid YAML at line 2"),
        ("a: \0", "not valid YAML: unacceptable character"),
        ("a:\n  b: 1\n  b: 2", "not valid YAML at line 3: the key 'b' stands twice"),
        ("a:\n  b: 010", "not valid YAML at line 2: 010: write the number in decimal digits, without a leading zero"),
        ("a:\n  b: 0x10", "not valid YAML at line 2: 0x10: write the number in decimal digits"),
        ("a:\n  b: 1:30", "not valid YAML at line 2: 1:30: write the number in decimal digits"),
        ("", "expected data sets by name, found nothing"),
        ("a: 3", "a: expected keys"),
    ],
)
def test_refuses_what_is_no_registry(text, line, tmp_path):
    path = tmp_path / "registry.yaml"
    path.write_text(text)
    with one_line(line):
        load_registry(path)


def test_missing_registry_says_where_to_stand(tmp_path):
    with pytest.raises(UserError, match=r"registry\.yaml: no such file; run the command in the project's root"):
        load_registry(tmp_path / "registry.yaml")


def test_the_page_explains_every_key():
    """docs/adding-a-data-set.md names each key of an entry and of its files, and each kind."""
    page = (REGISTRY.parents[1] / "docs" / "adding-a-data-set.md").read_text()
    keys = {*Entry.model_fields, *SourceFile.model_fields, *KEYS_OF_KIND}
    assert not [key for key in keys if f"`{key}`" not in page and f"`{key}: " not in page]
