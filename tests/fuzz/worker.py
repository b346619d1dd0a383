"""A process that reads cases one by one, and may be killed by any of them.

``python -m tests.fuzz.worker TARGET SEED FIRST END`` prints, for each case, a line when it begins
and one when it is over, as JSON. The system ends it by SIGPROF where a case takes too long.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from domain.errors import HomerError
from tests.fuzz import targets

LIMIT_MB = 1_024
"""Megabytes that a case may add to what the process holds."""
CEILING = 6 << 30
"""Bytes of address space, so that a finding does not take the machine along."""


def main() -> None:
    """Reads the cases that the arguments name."""
    name, seed, first, end = sys.argv[1], *map(int, sys.argv[2:5])
    target = targets.TARGETS[name]
    target.begin()
    resource.setrlimit(resource.RLIMIT_AS, (CEILING, CEILING))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    tell({"ready": True})
    with TemporaryDirectory() as folder:
        for number in range(first, end):
            kind, data = target.case(seed, number)
            path = Path(folder) / f"case{number}-{kind}"
            path.write_bytes(data)
            tell({"begin": number})
            tell({"end": number, **measured(target.read, path)})
            path.unlink()


def tell(what: dict[str, Any]) -> None:
    """A line to whoever started this process."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def measured(read: Callable[[Path], None], path: Path) -> dict[str, Any]:
    """What became of one case, and what it took."""
    # Begins to measure the most memory anew; kilobytes that are held now.
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    before, began = _field("VmRSS"), time.process_time()
    signal.setitimer(signal.ITIMER_PROF, targets.LIMIT_S)
    try:
        outcome, output = _outcome(read, path)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    grown = _field("VmHWM") - before
    if grown > LIMIT_MB << 10:
        outcome, output = "memory", f"{grown >> 10} MB more"
    took = time.process_time() - began
    return {"outcome": outcome, "message": output, "s": round(took, 3), "mb": grown >> 10}


def _outcome(read: Callable[[Path], None], path: Path) -> tuple[str, str]:
    try:
        read(path)
    except HomerError as error:
        return "refused", type(error).__name__
    except MemoryError:
        return "memory", "MemoryError"
    except BaseException as error:  # noqa: BLE001 - that is what is looked for
        where = traceback.extract_tb(error.__traceback__)[-1]
        return "crash", f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
    return "read", ""


def _field(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    main()
