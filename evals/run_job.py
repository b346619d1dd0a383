"""An evaluation in a process of its own, which continues without the page that started it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from domain.rights import acting_user
from domain.words import make_storable
from evals.datasets import read
from services.daemon import ACTING, log_file
from store.files import MODULE
from store.home import Home


@dataclass(frozen=True)
class RunJob:
    """A process that runs the evaluation ``name``; ``log`` has what it prints."""

    name: str
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def error(self) -> str:
        """Return the last error that it printed; empty for none."""
        lines = self.log.read_text(errors="replace").splitlines()
        errors = [line.partition(":")[2].strip() for line in lines if line.startswith("homer:")]
        return errors[-1] if errors and not self.running else ""


def start_run(
    home: Home,
    dataset: str,
    folder: Path,
    profile: str,
    command: Sequence[str] = (*MODULE, "cli"),
) -> RunJob:
    """Start an evaluation; return at once.

    Args:
        command: the command ``homer``.

    Raises:
        NotFound: there is no data set of this name.
        InputError: a file of it is missing or malformed.
    """
    folder = folder.expanduser().absolute()
    read(dataset, folder)
    name = f"{dataset}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    arguments = ["eval", "run", dataset, str(folder), "--profile", profile, "--name", name]
    log = home.make().logs / f"eval-{name}.log"
    environment = {**os.environ, "HOMER_HOME": str(home.root)}
    if user := acting_user.get():
        environment[ACTING] = make_storable(user)
    with log_file(log) as output:
        process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
    return RunJob(name, log, process)
