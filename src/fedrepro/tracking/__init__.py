"""MLflow as a view of the result folders: it may be deleted and made again, and training never waits for it.

Jobs write plain files; one writer at a time brings them into MLflow, which is some hundred times cheaper than logging from
every job and cannot lose a result. `mlflow` itself is imported inside functions: it costs seconds.
"""

from fedrepro.tracking.follow import follow
from fedrepro.tracking.prune import prune
from fedrepro.tracking.server import ui
from fedrepro.tracking.sync import SyncReport, sync

__all__ = ["SyncReport", "follow", "prune", "sync", "ui"]
