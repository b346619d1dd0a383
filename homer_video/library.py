"""The library of watched videos, for programs and notebooks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial, wraps
from pathlib import Path
from typing import Any, Self, cast

from cli.progress import meter
from domain.ingesting import Watched
from domain.moments import Answered, Found
from flows.workspace import Workspace, open_workspace
from homer_video.live import LiveWatch
from homer_video.moments import FoundMoments, VideoAnswer
from library.registry import ACTS, OF_THE_DOOR
from library.videos import all_videos
from perception.live import live_source
from store.home import Home
from store.progress import SILENT
from store.queries.library import LibraryEntry


def open_library(home: str | Path | None = None, profile: str | None = None) -> VideoLibrary:
    """Open a library, which is made if there is none.

    Args:
        home: its data directory; None: ``HOMER_HOME``, else the user's default.
        profile: the name or file of the models' profile; None: the configured one, else local.

    Raises:
        SetupError: the database cannot be opened, or a model is missing.
        InputError: there is no such profile.
    """
    folder = Home.default() if home is None else Home(Path(home).expanduser())
    return VideoLibrary(open_workspace(profile, folder))


class VideoLibrary:
    """An open library. Close it, or use it in a ``with`` block. Methods may be called by threads.

    Videos are named by title, id, or the beginning of an id.

    Args:
        workspace: opens the store and the models.
    """

    def __init__(self, workspace: AbstractContextManager[Workspace]) -> None:
        self._open = ExitStack()
        self._workspace = self._open.enter_context(workspace)
        self._store = self._workspace.store

    def __enter__(self) -> Self:
        """Return the library."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the library."""
        self.close()

    def close(self) -> None:
        """Close the database and release the models. A second call does nothing."""
        self._open.close()

    def __getattr__(self, name: str) -> Any:
        """Return an act of the registry, such as ``rename_person``, to be called.

        Raises:
            AttributeError: there is none of that name.
        """
        act = next((act for act in ACTS if act.place.endswith(f".{name}")), None)
        if act is None:
            raise AttributeError(name)

        @wraps(act.function)
        def do(*values: Any, **given: Any) -> Any:
            named = dict(zip(act.parameters, values, strict=False))
            if "direct" in act.parameters:
                # A program's work is done in the program.
                named["direct"] = True
            places = {"workspace": self._workspace, "store": self._store, "home": self._store.home}
            of_door = {one: given.pop(one) for one in OF_THE_DOOR & given.keys()}
            # Its models may be loaded already.
            of_door["opened"] = self._workspace
            bar = of_door.pop("progress", None) or SILENT
            with meter() if bar is True else nullcontext(bar) as of_door["progress"]:
                return self._shown(act.call(places[act.where], named | given, **of_door))

        return do

    def _shown(self, result: Any) -> Any:
        """Return a result as notebooks show it, with images."""
        if isinstance(result, Found):
            far = not result.close
            return FoundMoments(result.evidence, self._store, nothing_close=far)
        if isinstance(result, Answered):
            return VideoAnswer(result, self._store)
        if isinstance(result, AsyncIterator):
            return (self._shown(one) async for one in result)
        return (self._shown(one) for one in result) if isinstance(result, Iterator) else result

    def __dir__(self) -> list[str]:
        """Return the names of all acts, too."""
        return [*super().__dir__(), *(act.place.partition(".")[2] for act in ACTS)]

    @property
    def videos(self) -> list[LibraryEntry]:
        """The videos in memory, with length and state."""
        return list(all_videos(self._store).items)

    # Watching

    def ingest(self, *sources: str | Path, **more: Any) -> list[Watched]:
        """Watch files, the media of folders, and addresses; return what came of each.

        A video that is in memory is skipped. After an interruption the same call goes on.

        Args:
            sources: paths and addresses.
            more: what ``homer ingest`` takes, such as ``memory``, strategies whose memory is built,
                and ``again``. ``progress=False`` shows nothing on standard error.

        Raises:
            InputError: a file cannot be watched; if there are others, they are watched first.
            SetupError: a model is missing.
            ExceptionGroup: several files failed; it has an error of each.
        """
        rows: list[Watched] = self.__getattr__("ingest")(sources, **{"progress": True, **more})
        errors = [one.failure for one in rows if getattr(one, "failure", None)]
        if len(errors) > 1:
            raise ExceptionGroup("several sources could not be watched", errors)
        if errors:
            raise errors[0]
        return rows

    def watch(
        self,
        source: str,
        title: str = "",
        *,
        on_message: Callable[[str], None] = lambda _: None,
        **more: Any,
    ) -> LiveWatch:
        """Watch a camera, a stream or a pipe in the background until it ends or is stopped.

        Args:
            source: an address, a device or a pipe.
            title: what to call it.
            on_message: receives a line for each clip and each break.
            more: what ``homer watch`` takes, such as ``memory``, strategies whose frames are kept,
                ``record`` and ``away_s``.

        Raises:
            InputError: the source is none of these.
        """
        watch = partial(self.__getattr__("watch"), source, title, **more)
        return LiveWatch(live_source(source, title), watch, on_message)

    async def aask(self, question: str, *values: Any, **more: Any) -> VideoAnswer:
        """Answer a question as ``ask`` does, for asynchronous programs."""
        last: Any = None
        async for event in self.aask_stream(question, *values, **more):
            last = event
        return cast(VideoAnswer, last)
