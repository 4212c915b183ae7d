"""Starts a new Python in which none of the large libraries can be imported."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LARGE = ("torch", "torchvision", "mlflow", "pandas", "matplotlib", "scipy", "sklearn", "pyarrow", "h5py", "snakemake", "dvc")


def python(code: str, folder: Path = ROOT) -> str:
    """Runs `code` in a new process with all libraries. Returns its output."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def without_large(imports: str, value: str) -> Any:
    """Returns `value`, made of JSON's types, after `imports`. Python refuses to import a module that is None in
    `sys.modules`."""
    refuse = f"import json, sys; sys.modules.update(dict.fromkeys({LARGE!r})); "
    return json.loads(python(f"{refuse}{imports}; print(json.dumps({value}))"))
