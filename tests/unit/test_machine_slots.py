"""No more at a time than there are places, in one process and in several."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from domain.errors import SetupError
from models.slots import NoFreeSlot, Slots

HOLDS = """
import sys, time
from pathlib import Path
from models.slots import Slots

with Slots("a", 1, Path(sys.argv[1])).acquire():
    print("in", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("count", [1, 3])
def test_no_more_than_there_are_places_at_a_time(tmp_path: Path, count: int) -> None:
    lock, within, most = threading.Lock(), 0, 0

    def work(_number: int) -> None:
        nonlocal within, most
        with Slots("a", count, tmp_path).acquire(wait=lambda _s: None):
            with lock:
                within += 1
                most = max(most, within)
            threading.Event().wait(0.005)
            with lock:
                within -= 1

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(18)))
    assert most == count


def test_other_things_and_things_without_a_limit_do_not_wait(tmp_path: Path) -> None:
    with Slots("a", 1, tmp_path).acquire(), Slots("b", 1, tmp_path).acquire(0):
        with Slots("a", None, tmp_path).acquire(0):
            pass
        with pytest.raises(NoFreeSlot), Slots("a", 1, tmp_path).acquire(0):
            pass


def test_a_place_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no"), Slots("a", 1, tmp_path).acquire():
        raise ValueError("no")
    with Slots("a", 1, tmp_path).acquire(0):
        pass


def test_the_place_of_a_killed_process_is_free_again(tmp_path: Path) -> None:
    script = [sys.executable, "-c", HOLDS, str(tmp_path)]
    with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as other:
        assert (other.stdout and other.stdout.readline()) == "in\n"
        with pytest.raises(NoFreeSlot), Slots("a", 1, tmp_path).acquire(0):
            pass
        os.kill(other.pid, signal.SIGKILL)
    with Slots("a", 1, tmp_path).acquire(10):
        pass


def test_a_folder_that_others_may_write_to_is_not_trusted(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    theirs.chmod(0o777)
    with pytest.raises(SetupError, match="not yours alone"), Slots("a", 1, theirs).acquire():
        pass
    assert list(theirs.iterdir()) == []
