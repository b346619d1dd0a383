"""``python -m flows.schedules.worker_process POOL PORT``: a Prefect worker of one work pool."""

from __future__ import annotations

import os
import runpy
import sys

from services.daemon import stop_when_unused
from store.files import set_private_umask
from store.home import Home


def main() -> None:
    """Run the worker until it is stopped, or its data directory is gone."""
    pool, port = sys.argv[1:]
    set_private_umask()
    stop_when_unused(Home.default())
    # Prefect reads this port only from the environment, when it is imported.
    os.environ["PREFECT_WORKER_WEBSERVER_PORT"] = port
    worker = ["worker", "start", "--pool", pool, "--type", "process", "--with-healthcheck"]
    sys.argv = ["prefect", *worker, "--install-policy", "never"]
    runpy.run_module("prefect", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
