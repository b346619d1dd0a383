"""``python -m ui``: serve the app in the foreground; ``homer up`` runs it in the background."""

from __future__ import annotations

import argparse
from pathlib import Path

from domain.errors import HomerError
from services.supervisor import APP_PORT
from store.files import set_private_umask
from store.home import Home
from telemetry.logs import log_error, set_up_telemetry
from ui.application import run


def main() -> None:
    """Read host and port from the command line, and serve."""
    parser = argparse.ArgumentParser(prog="python -m ui", description="Homer's app.")
    parser.add_argument("--host", default="127.0.0.1", help="default: this machine only")
    parser.add_argument("--port", type=int, default=APP_PORT)
    parser.add_argument("--videos", type=Path, action="append", default=[], metavar="FOLDER")
    options = parser.parse_args()
    set_private_umask()
    try:
        set_up_telemetry(Home.default())
        run(options.host, options.port, options.videos)
    except HomerError as error:
        log_error(error)
        parser.exit(error.exit_code, f"homer: {error}\n")


if __name__ == "__main__":
    main()
