"""A fuzzing worker whose parsers do what none of Homer's may."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from domain.errors import MediaError
from tests.fuzz import targets, worker
from tests.fuzz.targets import Target


def read(path: Path) -> None:
    match int(path.name.removeprefix("case").partition("-")[0]):
        case 1:
            raise MediaError("as it may")
        case 2:
            raise KeyError("as it may not")
        case 3:
            os.kill(os.getpid(), signal.SIGSEGV)
        case 4:
            while True:
                pass
        case 5:
            bytearray(80 << 20)
        case 6:
            os._exit(3)


if __name__ == "__main__":
    targets.TARGETS["bad"] = Target("bad", 1.0, lambda _folder: {"a": b"x"}, read)
    targets.LIMIT_S, worker.LIMIT_MB = 0.3, 60
    worker.main()
