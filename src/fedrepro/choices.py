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


def unknown_key(noun: str, name: str, names: Collection[str]) -> str:
    """Returns the message for an unknown key. Where no name is near, it offers one with that word: `client_lr` for `lr`."""
    from fedrepro.registry import unknown

    message = unknown(noun, name, sorted(names))
    longer = sorted((key for key in names if name in key.split("_")), key=len)
    return message if "did you mean" in message or not longer else message.replace("; ", f"; did you mean {longer[0]!r}? ", 1)


# The first words of the outcome of a sync that wrote nothing. The workflow then tries again.
UNSYNCED = "not synced"
