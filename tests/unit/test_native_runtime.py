"""Settings of OpenMP and of the C library that models run with."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from models.native_runtime import ARENAS

COUNT = """
import ctypes, sys, tempfile
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
import numpy as np
from perception.picture_stream import keep_freed_memory

keep_freed_memory()
met = Barrier(12)

def hold(_):
    held = [np.ones(100_000, np.uint8) for _ in range(10)]
    met.wait()

with ThreadPoolExecutor(12) as pool:
    list(pool.map(hold, range(12)))
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile() as file:
    out = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
    libc.malloc_info(0, out)
    libc.fclose(out)
    print(file.read().count(b"<heap nr"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's own setting")
def test_memory_pools_do_not_grow_with_threads() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COUNT], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) <= ARENAS


USED = (
    "import numpy as n; from models.whisper import SileroActivity; "
    "SileroActivity().spans(n.zeros(16000, 'f'))"
)


@pytest.mark.parametrize(("given", "spins"), [({}, "0'"), ({"OMP_WAIT_POLICY": "active"}, "3000")])
def test_waiting_threads_sleep_unless_told_otherwise(given: dict[str, str], spins: str) -> None:
    # OpenMP prints its settings, which it reads once, when it is loaded.
    clean = {key: value for key, value in os.environ.items() if not key.startswith("OMP_")}
    output = subprocess.run(
        [sys.executable, "-c", USED],
        env=clean | {"OMP_DISPLAY_ENV": "verbose"} | given,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert f"GOMP_SPINCOUNT = '{spins}" in output.stderr
