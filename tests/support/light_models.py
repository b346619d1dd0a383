"""Models without weights that note in files which process used them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from domain.errors import ModelError
from domain.media import StreamSettings
from domain.settings import Settings, WatchSettings
from flows.workspace import Workspace
from models.profile import Profile
from models.toolbox import Toolbox
from store.database import Store
from store.home import Home

MEETING_S = 60.0
LIGHT = Settings(watch=WatchSettings(clip_ms=2000, sample_fps=2.0, keyframes=1))


class LightToolbox(Toolbox):
    """Sees nothing and nobody. ``weights`` is a folder, in which each reading of a screen is noted.

    A file ``meet-N`` in it makes the models wait until N workers have made theirs, so that all of
    them take part however short the clips are; a file ``fatal`` makes the next reading the last of
    its process, and one ``odd`` makes it fail.
    """

    def __init__(self, profile: Profile, weights: Path, *_: object) -> None:
        super().__init__(profile, weights)

    @property
    def text(self) -> Any:
        from tests.support.remembered import WordEmbedder

        return WordEmbedder()

    @property
    def sentences(self) -> Any:
        from tests.support.remembered import PARSER

        return PARSER

    @property
    def faces(self) -> Any:
        return _Unseeing()

    @property
    def screen(self) -> Any:
        known = self.__dict__.get("reader")
        if known is None:
            known = self.__dict__["reader"] = _NotingReader(self.weights)
        return known


class _Unseeing:
    name, same_person, min_score, min_quality = "none", 0.5, 0.5, 0.0

    def faces(self, image: object) -> list[Any]:
        return []


class _NotingReader:
    def __init__(self, notes: Path) -> None:
        self._notes = notes
        (notes / f"made-{os.getpid()}-{id(self)}").touch()
        until = time.monotonic() + MEETING_S
        while not self._all_there() and time.monotonic() < until:
            time.sleep(0.01)

    def _all_there(self) -> bool:
        wanted = [int(path.name.partition("-")[2]) for path in self._notes.glob("meet-*")]
        return len(list(self._notes.glob("made-*"))) >= max(wanted, default=0)

    def read(self, image: object) -> list[Any]:
        if _taken(self._notes / "fatal"):
            os._exit(9)
        if _taken(self._notes / "odd"):
            raise ModelError("the screen cannot be read")
        with (self._notes / "read").open("a") as notes:
            notes.write(f"{os.getpid()}\n")
        return []


def _taken(path: Path) -> bool:
    """Delete the file; return whether it was still there."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def read_by(notes: Path) -> list[str]:
    """List the process id of each reading; each clip is read once."""
    found = notes / "read"
    return found.read_text().split() if found.exists() else []


def light_toolbox(notes: Path, meeting: int = 0) -> LightToolbox:
    """Return models that write to ``notes`` and wait for those of ``meeting`` workers."""
    notes.mkdir(exist_ok=True)
    if meeting:
        (notes / f"meet-{meeting}").touch()
    return LightToolbox(Profile(name="light", objects="none", sounds="none", settings=LIGHT), notes)


def nap(_order: object) -> Any:
    """Sleep for longer than any test waits."""
    time.sleep(600)


def pid(_order: object) -> Any:
    return os.getpid()


def in_little_clips(
    home: Home,
    store: Store,
    toolbox: Toolbox,
    *,
    sample_fps: float = 2.0,
    stream: StreamSettings | None = None,
    background: bool = False,
) -> Workspace:
    """A workspace that watches clips of two seconds, with little to look at in each."""
    settings = toolbox.profile.settings
    small = {"clip_ms": 2000, "sample_fps": sample_fps, "keyframes": 1}
    changed = {
        "watch": settings.watch.model_copy(update=small),
        "stream": stream or settings.stream,
    }
    profile = toolbox.profile.model_copy(update={"settings": settings.model_copy(update=changed)})
    return Workspace(home, store, profile, toolbox, background=background)
