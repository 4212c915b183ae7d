"""The names of devices, engines and scales with committed evidence, and the error message for an unknown name."""

from collections.abc import Collection

from fedrepro.errors import UserError

DEVICES = ("auto", "cpu", "cuda")  # as in params.yaml
ENGINES = ("auto", "sequential", "vectorised", "plain")
PUBLISHED = ("full", "short")  # scales whose evidence is committed, the one that is preferred first


def require_known(where: str, noun: str, name: object, names: Collection[str]) -> None:
    """UserError unless `name` is one of `names`: it says where the name stands, the nearest of them, and all of them in their
    order."""
    if name not in names:
        from fedrepro.registry import unknown  # imported here, so that the command line starts faster

        raise UserError(f"{where}: {unknown(noun, name, [*names])}")


# The first words of the outcome of a sync that wrote nothing. The workflow then tries again.
UNSYNCED = "not synced"
