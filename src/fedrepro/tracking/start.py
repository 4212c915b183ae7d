"""MLflow's server with a first page that leads to the runs; `fedrepro ui` starts it through MLflow's entry point `mlflow.app`.

MLflow opens as a tool for language models, beside a chat. The browser stores what MLflow shows, so the first page writes the
settings that this browser lacks. Then it redirects to the page of the link, or to the newest runs. A plain `mlflow ui` skips
this page and shows the same runs.
"""

import json
import os
from typing import Any

from fedrepro.tracking import store, views
from fedrepro.tracking.backend import our_runs
from fedrepro.tracking.server import DATABASE

PAGE = """<!doctype html>
<meta charset="utf-8">
<title>MLflow</title>
<script>
const {settings, pages, address} = %s;
const absent = (key) => localStorage.getItem(key) === null;
for (const [key, value] of Object.entries(settings)) if (absent(key)) localStorage.setItem(key, value);
for (const {key, version, state} of pages) {
  if (localStorage.getItem("fedrepro-" + key) === version) continue;
  localStorage.setItem("fedrepro-" + key, version);
  localStorage.setItem(key, state);
}
location.replace("/?ui" + (location.hash || "#" + address));
</script>
<noscript>MLflow needs JavaScript.</noscript>
"""


class FirstPage:
    """The ASGI application: the first page at `/`, MLflow everywhere else, with its own first page at `/?ui`."""

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        from mlflow import MlflowClient
        from mlflow.server.fastapi_app import app as mlflow_app
        from starlette.responses import HTMLResponse

        if scope["type"] == "http" and scope["path"] == "/" and not scope["query_string"]:
            client = MlflowClient(tracking_uri=os.environ[DATABASE])
            await HTMLResponse(page(client))(scope, receive, send)
        else:
            await mlflow_app(scope, receive, send)


app = FirstPage()


def page(client: Any) -> str:
    """The first page: settings for a new browser, and the way to the experiment whose runs ended last."""
    experiments = store.our_experiments(client)
    pages = [views.page(identity, our_runs(client, identity, views.ONLY_MEANS)) for identity in experiments.values()]
    newest = store.newest_experiment(client)
    content = json.dumps({"settings": views.BROWSER, "pages": pages, "address": views.address(newest)})
    return PAGE % content.replace("<", "\\u003c")
