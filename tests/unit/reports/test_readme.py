"""The README shows a finished table; what its text says of it is what the committed report says."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_picture_in_the_readme_has_the_reports_numbers() -> None:
    """Measured and printed top-1 accuracy of every cell, row by row, then the counts; picture and link lead to files."""
    readme = (ROOT / "README.md").read_text()
    shown = readme.partition("</picture>")[0].rpartition("<a ")[2]
    link, dark, light, alt = re.findall(r'(?:href|srcset|src|alt)="([^"]+)"', shown)
    assert all((ROOT / path).is_file() for path in (dark, light, link))
    report = json.loads((ROOT / link).with_suffix(".json").read_text())
    top1 = [cell for cell in report["cells"] if cell["metric"] == "test_accuracy"]
    numbers = [f"{cell[key]:.2f}" for cell in top1 for key in ("mean", "printed")]
    assert re.findall(r"\d+\.\d\d(?= |\))", re.sub(r"α = 0\.01", "", alt)) == numbers
    counts = report["counts"]
    said = f"{counts['reproduced']} are reproduced, {counts['within noise']} within noise"
    assert f"Of {len(report['cells'])} cells, with top-3, {said}, {counts['not reproduced']} not reproduced." in alt
