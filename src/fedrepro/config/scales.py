"""Names of scales in paths. Below reports/full are the papers' own settings, below reports/edited-full those of params.yaml.

Imported by the workflow's process: needs no library.
"""

_EDITED = "edited-"


def edited(scale: str) -> str:
    """The name under which params.yaml's settings at `scale` are reported."""
    return _EDITED + scale


def plain(name: str) -> str:
    """The scale of papers/scales.yaml behind a name."""
    return name.removeprefix(_EDITED)
