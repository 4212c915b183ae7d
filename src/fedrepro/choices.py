"""Words among which one chooses: devices, engines, scales with committed evidence; and what is said of an unknown word."""

from collections.abc import Collection

from fedrepro.errors import UserError

DEVICES = ("auto", "cpu", "cuda")  # as in params.yaml
ENGINES = ("auto", "sequential", "vectorised", "plain")
PUBLISHED = ("full", "short")  # scales whose evidence is committed, the one that is preferred first


def require_known(where: str, noun: str, name: object, known: Collection[str]) -> None:
    """UserError unless `name` is one of `known`: it says where the name stands, the nearest known one, and all of them in their
    order."""
    if name not in known:
        from fedrepro.registry import unknown  # here, so that the command line starts without it

        raise UserError(f"{where}: {unknown(noun, name, [*known])}")


def unknown_key(noun: str, name: str, known: Collection[str]) -> str:
    """What is said of an unknown key; where no name is near, one of which it is a word: `client_lr` for `lr`."""
    from fedrepro.registry import unknown

    said = unknown(noun, name, sorted(known))
    longer = sorted((one for one in known if name in one.split("_")), key=len)
    return said if "did you mean" in said or not longer else said.replace("; ", f"; did you mean {longer[0]!r}? ", 1)


# How the outcome of a sync begins that wrote nothing; the workflow tries again.
UNSYNCED = "not synced"
