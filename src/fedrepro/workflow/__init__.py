"""What the Snakefile imports. None of it loads torch, which takes seconds: that is left to `fedrepro` processes."""

from fedrepro.workflow import session
from fedrepro.workflow.graph import Workflow

__all__ = ["Workflow", "session"]
