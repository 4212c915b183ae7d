"""The README shows a finished table; what its text says of it is what the committed report says."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_picture_in_the_readme_has_the_reports_numbers() -> None:
    """Measured and printed accuracy of every cell that was run, row by row, then the counts; picture and link lead to files."""
    readme = (ROOT / "README.md").read_text()
    shown = readme.partition("</picture>")[0].rpartition("<a ")[2]
    link, dark, light, alt = re.findall(r'(?:href|srcset|src|alt)="([^"]+)"', shown)
    assert all((ROOT / path).is_file() for path in (dark, light, link))
    report = json.loads((ROOT / link).with_suffix(".json").read_text())
    cells = [cell for cell in report["cells"] if cell["mean"] is not None]
    assert re.findall(r"\d+\.\d\d", alt) == [f"{cell[key]:.2f}" for cell in cells for key in ("mean", "printed")]
    counts = report["header"]["counts"]
    said = f"{counts['reproduced']} are reproduced, {counts['consistent']} consistent, {counts['inconclusive']} inconclusive"
    assert f"Of {len(cells)} cells {said}, {counts['not reproduced']} not reproduced." in alt
