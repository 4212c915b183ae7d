"""fedrepro new: files that run as they are, to be edited."""

from argparse import Namespace
from pathlib import Path

ROOT = Path()


def new(options: Namespace) -> None:
    """Says which files were written, and what to do next."""
    from fedrepro.skeletons import dataset, method, paper, table, write

    skeleton = {
        "method": lambda: method.files(ROOT, options.name, options.slot),
        "table": lambda: table.files(ROOT, options.name),
        "paper": lambda: paper.files(ROOT, options.name),
        "dataset": lambda: dataset.files(ROOT, options.name),
    }[options.kind]()
    write(ROOT, skeleton)
    for path in skeleton.files:
        print(f"{'changed' if path in skeleton.edited else 'written'} {path}")
    print("next:", *(f"  {step}" for step in skeleton.next), sep="\n")
