"""The library of watched videos, for programs and notebooks."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from functools import partial, wraps
from html import escape
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Self, cast, overload

from cli.console import meter
from domain.errors import BlobGone
from domain.moments import Answered, Found, Moment
from domain.time import in_seconds
from domain.watching import Watched
from domain.words import format_time, plain_line
from flows.workspace import Workspace, open_workspace
from library.answers import confidence_line, one_line, option_line
from library.moments import frame_at
from library.registry import ACTS, OF_THE_DOOR
from library.videos import all_videos
from perception.live import LiveSource, live_source
from store.database import Store
from store.home import Home
from store.progress import SILENT, SilentMeter
from store.queries.library import LibraryEntry

if TYPE_CHECKING:
    import pandas


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
        # All sources were tried; what failed is raised at the end.
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


# A stream that is watched in the background while a program goes on.


class _Lines(SilentMeter):
    """Progress as lines for a program; a stream has no end to count to."""

    def __init__(self, on_message: Callable[[str], None]) -> None:
        self._on_message = on_message

    def say(self, text: str) -> None:
        """Pass a line on."""
        self._on_message(text)


class LiveWatch:
    """Watches a live source in a thread of its own until it ends or ``stop`` is called.

    Args:
        source: the camera, stream or pipe.
        watch: watches it, until the event that it is given is set.
        on_message: receives a line for each clip and each break.
    """

    def __init__(
        self, source: LiveSource, watch: Callable[..., Watched], on_message: Callable[[str], None]
    ) -> None:
        self._source, self._watch, self._on_message = source, watch, on_message
        self._stop, self._error = Event(), list[BaseException]()
        self._thread = Thread(target=self._run, name=f"watch {source.label}", daemon=True)
        self._thread.start()

    @property
    def video(self) -> str:
        """The id of the video that the stream is stored as."""
        return self._source.id

    @property
    def running(self) -> bool:
        """Whether the source is still watched."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End it after storing what has arrived.

        Raises:
            HomerError: watching failed.
        """
        self._stop.set()
        self.wait()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the source has ended.

        Raises:
            HomerError: watching failed.
        """
        self._thread.join(timeout_s)
        if self._error:
            raise self._error.pop()

    def __enter__(self) -> Self:
        """Return the stream that is being watched."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it after storing what has arrived."""
        self.stop()

    def _run(self) -> None:
        try:
            self._watch(stop=self._stop, progress=_Lines(self._on_message))
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            # A thread's errors reach nobody: ``wait`` raises them.
            self._error.append(error)


# What a search found, and answers, for programs and notebooks, which show images of it.

SHOWN_WITH_IMAGE = 6
"""Moments that a notebook shows with an image; the others have text only."""
COLUMNS = ("ref", "video", "title", "start_s", "end_s", "score", "text")


class FoundMoments(Sequence[Moment]):
    """Moments in order, best first; a notebook shows them with their images.

    Args:
        found: the moments.
        store: has their images.
        nothing_close: whether these are only the nearest, since nothing close was found.
    """

    def __init__(
        self, found: Iterable[Moment], store: Store, *, nothing_close: bool = False
    ) -> None:
        self._found, self._store, self.nothing_close = tuple(found), store, nothing_close

    @overload
    def __getitem__(self, index: int) -> Moment: ...
    @overload
    def __getitem__(self, index: slice) -> FoundMoments: ...
    def __getitem__(self, index: int | slice) -> Moment | FoundMoments:
        """Return one moment, or some of them."""
        if isinstance(index, int):
            return self._found[index]
        return FoundMoments(self._found[index], self._store, nothing_close=self.nothing_close)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._found)

    def __repr__(self) -> str:
        """Return a line for each moment."""
        lines = ["nothing close; what was nearest:"] if self.nothing_close else []
        return "\n".join([*lines, *(plain_line(str(one)) for one in self)]) or "nothing found"

    def image(self, moment: Moment) -> bytes | None:
        """Return the image of a moment as a JPEG; None where there is none near."""
        frame = frame_at(self._store, moment.video, moment.span.start_ms, moment.ref)
        with suppress(BlobGone):
            return None if frame is None else self._store.blobs.get(frame.blob)
        return None

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with a row for each moment and the columns ``COLUMNS``."""
        import pandas

        rows = [in_seconds(one.model_dump(mode="json")) for one in self._found]
        return pandas.DataFrame(rows, columns=list(COLUMNS))

    def _repr_html_(self) -> str:
        return table_of(self)


def table_of(moments: FoundMoments) -> str:
    """Return moments as an HTML table: image, time, text."""
    remark = "<p>Nothing close was found; what was nearest:</p>" if moments.nothing_close else ""
    rows = ""
    for number, one in enumerate(moments):
        time, picture = format_time(one.span.start_ms), ""
        image = moments.image(one) if number < SHOWN_WITH_IMAGE else None
        if image is not None:
            alt, data = escape(f"{one.title} at {time}"), b64encode(image).decode()
            picture = f'<img width="160" alt="{alt}" src="data:image/jpeg;base64,{data}">'
        rows += f"<tr><td>{picture}</td><td>{escape(one.title)}<br>{time}</td>"
        rows += f'<td style="text-align:left">{escape(one.text)}</td></tr>'
    return f"{remark}<table>{rows}</table>" if rows else "<p>Nothing was found.</p>"


class VideoAnswer:
    """An answer as it is on record, with all that ``Answered`` has; notebooks show its images."""

    def __init__(self, answered: Answered, store: Store) -> None:
        self._answered, self._store = answered, store

    def __getattr__(self, name: str) -> Any:
        """Return what is on record, such as ``confidence`` or ``citations``."""
        return getattr(self._answered, name)

    @property
    def text(self) -> str:
        """The answer as a person reads it."""
        return option_line(one_line(self.answer), self.option, self.chosen)

    @property
    def moments(self) -> FoundMoments:
        """What it cites, with images."""
        return FoundMoments(self.citations, self._store)

    def __str__(self) -> str:
        """Return the answer as a person reads it."""
        return self.text

    def __repr__(self) -> str:
        """Return the answer, its confidence and a line for each citation."""
        cited = repr(self.moments) if self.citations else "nothing is cited"
        return f"{self.text}\n{self._remarks}\n{cited}"

    @property
    def _remarks(self) -> str:
        return plain_line("; ".join(filter(None, (confidence_line(self._answered), self.note))))

    def _repr_html_(self) -> str:
        cited = table_of(self.moments) if self.citations else "<p>Nothing is cited.</p>"
        return f"<p><b>{escape(self.text)}</b><br>{escape(self._remarks)}</p>{cited}"
