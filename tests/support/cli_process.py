"""The ``homer`` command in a process of its own, its language model being a test's server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAUNCH = """
import sys
import flows.workspace
from cli.main import main
from tests.support.obedient_model import LlmToolbox
from tests.support.cli_process import Served
address = sys.argv.pop(1)
flows.workspace.Toolbox = lambda _profile, _weights: LlmToolbox(Served(address))
main()
"""


class Served:
    """The address of a server, as a toolbox needs it."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url


def homer(base_url: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a command; the environment names the home and the database."""
    return subprocess.Popen(
        [sys.executable, "-c", LAUNCH, base_url, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
