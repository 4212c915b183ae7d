"""Pictures, one kind a file. matplotlib is imported when one is drawn; equal content gives equal bytes.

A kind of figure that a paper's files may ask for is a registered call (`kinds`): one file, and one word in the import below.
"""

from fedrepro.reports.figures import bars, curves, heat_map, histogram, line, matrix, plane, scatter  # noqa: F401  enrols them
from fedrepro.reports.figures.kinds import KINDS, Drawn, Kind, make_kind

__all__ = ["KINDS", "Drawn", "Kind", "make_kind"]
