"""Two pieces of evidence of one seed compared to the last bit: what was published, and what training it again gave."""

from dataclasses import dataclass
from typing import Any

from fedrepro.engine.records import METRICS

# File of a result folder -> what it is called in a sentence.
_FILES = {METRICS: "the recorded metrics", "model.safetensors": "the final model"}
REASONS = ("arithmetic", "products", "device", "engine", "torch", "numpy")  # keys of an environment; another value is a reason


@dataclass(frozen=True)
class Mismatch:
    """The differences of two pieces of evidence. All fields are empty if they are identical to the bit."""

    first: str  # the first round and metric that differ, with both values; "" where every number is the same
    files: list[str]  # what else differs, in words: final model, metrics file
    facts: list[str]  # configuration, inputs or summary that differ, in words

    @property
    def identical(self) -> bool:
        """Whether every number, the final model and all that they were computed from are the same."""
        return not (self.first or self.files or self.facts)


def compare(published: dict[str, Any], again: dict[str, Any], strict: bool = True) -> Mismatch:
    """The differences of two pieces of evidence of the same run and seed.

    Not `strict`: metrics that only one of them has are left out, since they may have come or gone with another version, and so
    is the file of metrics: its curves are compared, and the version of the library that wrote it stands in it.
    """
    kinds = sorted({*published["inputs"], *again["inputs"]})
    facts = [f"{kind} with another sha256" for kind in kinds if published["inputs"].get(kind) != again["inputs"].get(kind)]
    for key in ("run_id", "seed", "status", "method", "config", "summary"):
        facts += [f"another {key}"] if published[key] != again[key] else []
    in_one = sorted(published["curves"].keys() ^ again["curves"].keys())
    facts += [f"metric {name} is in one of them only" for name in in_one if strict]
    before, now = published.get("files", {}), again.get("files", {})
    names = [*_FILES] if strict else [name for name in _FILES if name in before and name != METRICS]
    files = [_FILES[name] for name in names if before.get(name) != now.get(name)]
    return Mismatch(_first_difference(published["curves"], again["curves"]), files, facts)


def _first_difference(published: dict[str, list], again: dict[str, list]) -> str:
    """Describes the first round where a metric of both differs."""
    differences: list[tuple[int, str]] = []
    for metric in sorted(published.keys() & again.keys()):
        before, now = published[metric], again[metric]
        rounds = (t for t in range(max(len(before), len(now))) if before[t : t + 1] != now[t : t + 1])
        differences += [(t, metric) for t in rounds][:1]
    if not differences:
        return ""
    t, metric = min(differences)
    now, before = (repr(curve[t]) if t < len(curve) else "missing" for curve in (again[metric], published[metric]))
    return f"{metric} of round {t} is {now}, published is {before}"


def reasons(published: dict[str, Any], again: dict[str, Any], mismatch: Mismatch) -> list[str]:
    """Returns the reasons why they may differ, most telling first; empty for two identical ones."""
    if mismatch.identical:
        return []
    before, now = published["environment"], again["environment"]
    explanations = [f"it was computed from {fact}" for fact in mismatch.facts if "sha256" in fact]
    if before.get("arithmetic") != "portable":
        explanations.append("it was not computed in portable arithmetic, which alone is the same on every processor")
    for key in REASONS:
        if key == "arithmetic" and before.get(key) != "portable":
            continue
        if before.get(key) != now.get(key):
            explanations.append(f"{key.replace('numpy', 'NumPy')} was {before.get(key)}, here it is {now.get(key)}")
    for name, place in (("architecture", -1), ("C library", -2)):
        parts = [_platform(environment)[place] for environment in (before, now)]
        if parts[0] != parts[1]:
            explanations.append(f"the {name} was {parts[0]}, here it is {parts[1]}")
    if mismatch.first and not mismatch.files and published.get("files"):
        explanations.insert(
            0, "its own sha256 of metrics and model are those of this training: numbers in the file were changed afterwards"
        )
    if before.get("commit") != now.get("commit"):
        explanations.append(f"it was computed at commit {before.get('commit')}, here it is {now.get('commit')}")
    return explanations or ["nothing in its environment explains it: the file was changed, or a promise is broken"]


def _platform(environment: dict[str, Any]) -> tuple[str, str]:
    """(C library, architecture) of a platform such as Linux-6.1-x86_64-with-glibc2.36."""
    system, _, library = str(environment.get("platform")).partition("-with-")
    return library or "unknown", system.rsplit("-", 1)[-1]
