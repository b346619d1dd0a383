"""What the C library holds does not grow with the threads that models ran in."""

from __future__ import annotations

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
def test_threads_share_a_few_pools_of_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COUNT], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) <= ARENAS
