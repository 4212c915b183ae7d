"""fedrepro new: files that run as they are, to be edited."""

from argparse import Namespace
from pathlib import Path


def new(options: Namespace) -> None:
    """Says which files were written, and what to do next."""
    from fedrepro.skeletons import dataset, method, paper, table, write

    skeleton = {
        "method": lambda: method.files(Path(), options.name, options.slot),
        "table": lambda: table.files(Path(), options.name),
        "paper": lambda: paper.files(Path(), options.name),
        "dataset": lambda: dataset.files(Path(), options.name),
    }[options.kind]()
    write(Path(), skeleton)
    for path in skeleton.files:
        print(f"{'changed' if path in skeleton.edited else 'written'} {path}")
    print("next:", *(f"  {step}" for step in skeleton.next), sep="\n")
