"""Runs the command of an alert, with the event as JSON on its standard input."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress

from flows.alerts.webhook import NotDelivered

_PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR")
_OF_THE_SESSION = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")


def run_command(command: tuple[str, ...], body: bytes, limit_s: float) -> None:
    """Run a command, without a shell, and check that it succeeded.

    It has none of Homer's environment, which may hold passwords and keys, and its output is not
    read. When the time is over it is ended with all processes of its group.

    Raises:
        NotDelivered: it cannot be run, fails, or takes longer than ``limit_s`` seconds.
    """
    passed = (*_PASSED_ON, *_OF_THE_SESSION)
    environment = {name: os.environ[name] for name in passed if name in os.environ}
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise NotDelivered(f"the command cannot be run: {type(error).__name__}") from error
    with process:
        try:
            process.communicate(body, timeout=limit_s)
        except subprocess.TimeoutExpired as error:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            raise NotDelivered(f"the command took longer than {limit_s:g} s") from error
    if process.returncode:
        raise NotDelivered(f"the command ended with code {process.returncode}")
