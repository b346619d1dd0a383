"""The library of watched videos, for programs and notebooks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Self

from cli.ingest import Reporter
from cli.progress import meter
from domain.asking import Mode, Question
from domain.errors import InputError
from domain.memories import MemoryView
from domain.moments import Found
from domain.trajectory import RunEvent, RunListener
from flows.addresses import find_files
from flows.ingest_files import watch_files
from flows.workspace import Workspace, open_workspace
from graphs.ask_result import AskResult
from graphs.runner import Runner
from graphs.stream import iterate, stream
from homer_video.live import LiveWatch
from homer_video.moments import FoundMoments
from homer_video.questions import VideoAnswer
from library.asking import make_question
from library.registry import ACTS
from library.videos import all_videos
from perception.live import live_source
from retrieval.adapters import as_langchain_retriever, as_langchain_tools, as_llama_index
from retrieval.search_once import view_of_names
from store.home import Home
from store.progress import SILENT
from store.queries.library import LibraryEntry
from store.vector_index import build_index

if TYPE_CHECKING:
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import BaseTool
    from llama_index.core.retrievers import BaseRetriever as LlamaIndexRetriever

MOST_FOUND = 10
"""Moments that a search returns by default."""

VideoNames = str | Sequence[str] | None
"""Titles or ids of videos, or the beginning of an id; None: all videos."""


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
        self._open, self._lock = ExitStack(), Lock()
        self._workspace = self._open.enter_context(workspace)
        self._store, self._toolbox = self._workspace.store, self._workspace.toolbox
        self._runner: Runner | None = None

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
            result = act.call(places[act.where], named | given)
            if isinstance(result, Found):
                far = not result.close
                return FoundMoments(result.evidence, self._store, nothing_close=far)
            return result

        return do

    def __dir__(self) -> list[str]:
        """Return the names of all acts, too."""
        return [*super().__dir__(), *(act.place.partition(".")[2] for act in ACTS)]

    @property
    def videos(self) -> list[LibraryEntry]:
        """The videos in memory, with length and state."""
        return list(all_videos(self._store).items)

    # Watching

    def ingest(
        self,
        *sources: str | Path,
        memory: Sequence[str] = (),
        again: bool = False,
        progress: bool = True,
    ) -> list[LibraryEntry]:
        """Watch files, the media of folders, and addresses; return the videos in their order.

        A video that is in memory is skipped. After an interruption the same call goes on.

        Args:
            sources: paths and addresses.
            memory: strategies whose memory is built; none: as the settings say.
            again: also retry clips that failed for good.
            progress: show progress with the time left on standard error.

        Raises:
            InputError: a file cannot be watched; if there are others, they are watched first.
            SetupError: a model is missing.
            ExceptionGroup: several files failed; it has an error of each.
        """
        workspace = self._workspace.with_memory_of(tuple(memory))
        with meter() if progress else nullcontext(SILENT) as bar:
            files, unfetched = find_files(
                workspace.home,
                list(map(str, sources)),
                public_only=False,
                progress=bar,
                warn=bar.say,
            )
            outcomes = list(watch_files(workspace, files, Reporter(bar), direct=True, again=again))
            build_index(self._store, bar)
        errors = [*(one.error for one in unfetched), *(one.error for one in outcomes)]
        _raise_all([error for error in errors if error is not None])
        known = {video.id: video for video in self.videos}
        return [known[one.watched.video.id] for one in outcomes if one.watched is not None]

    def watch(
        self,
        source: str,
        title: str = "",
        *,
        memory: Sequence[str] = (),
        record: bool = False,
        away_s: float | None = None,
        on_message: Callable[[str], None] = lambda _: None,
    ) -> LiveWatch:
        """Watch a camera, a stream or a pipe in the background until it ends or is stopped.

        Args:
            source: an address, a device or a pipe.
            title: what to call it.
            memory: strategies whose frames are kept; none: as the settings say.
            record: store what comes, so that moments can be played.
            away_s: seconds without the source after which the stream has ended; None: no limit.
            on_message: receives a line for each clip and each break.

        Raises:
            InputError: the source is none of these.
        """
        workspace = self._workspace.with_memory_of(tuple(memory))
        if record:
            workspace = workspace.with_recording()
        return LiveWatch(workspace, live_source(source, title), on_message, away_s)

    # Searching

    def as_retriever(
        self,
        video: VideoNames = None,
        *,
        mode: Literal["event", "video", "keyframe"] = "video",
        as_of_s: float | None = None,
    ) -> BaseRetriever:
        """Return a LangChain retriever over the videos as they are now."""
        view = self._view(video, as_of_s)
        return as_langchain_retriever(self._workspace.retrievers, view, Mode(mode))

    def as_llama_index_retriever(
        self,
        video: VideoNames = None,
        *,
        mode: Literal["event", "video", "keyframe"] = "video",
        as_of_s: float | None = None,
    ) -> LlamaIndexRetriever:
        """Return a LlamaIndex retriever over the videos as they are now."""
        return as_llama_index(self._workspace.retrievers, self._view(video, as_of_s), Mode(mode))

    def as_tools(self, video: VideoNames = None, *, as_of_s: float | None = None) -> list[BaseTool]:
        """Return LangChain tools that search the videos as they are now."""
        return as_langchain_tools(self._workspace.retrievers, self._view(video, as_of_s))

    # Asking

    def ask(
        self,
        question: str,
        video: VideoNames = None,
        *,
        options: Sequence[str] = (),
        as_of_s: float | None = None,
        strategy: str | None = None,
        on_event: RunListener | None = None,
    ) -> VideoAnswer:
        """Answer a question.

        Args:
            question: the question.
            video: about these videos.
            options: answers to choose from.
            as_of_s: what was known at this second of the videos; None: at their end.
            strategy: one of ``strategies``, or ``auto``; None: as the settings say.
            on_event: receives each step while it is searched.

        Raises:
            InputError: the question is empty, or nothing was watched.
            NotFound: there is no such video or strategy.
            ModelError: the language model cannot be reached.
        """
        asked = self._question(question, video, options, as_of_s)
        return self._answer(self._runner_of().ask(asked, on_event, strategy=strategy), asked)

    def ask_stream(
        self,
        question: str,
        video: VideoNames = None,
        *,
        options: Sequence[str] = (),
        as_of_s: float | None = None,
        strategy: str | None = None,
    ) -> Iterator[RunEvent | VideoAnswer]:
        """Answer a question as ``ask`` does: yield each step, and the answer last.

        Ending the iteration early ends the search; the best answer so far is stored.
        """
        asked = self._question(question, video, options, as_of_s)
        for event in iterate(self._runner_of(), asked, strategy):
            yield self._answer(event, asked) if isinstance(event, AskResult) else event

    async def aask_stream(
        self,
        question: str,
        video: VideoNames = None,
        *,
        options: Sequence[str] = (),
        as_of_s: float | None = None,
        strategy: str | None = None,
    ) -> AsyncIterator[RunEvent | VideoAnswer]:
        """Answer a question as ``ask_stream`` does, for asynchronous programs."""
        asked = self._question(question, video, options, as_of_s)
        async for event in stream(self._runner_of(), asked, strategy=strategy):
            yield self._answer(event, asked) if isinstance(event, AskResult) else event

    async def aask(self, question: str, video: VideoNames = None, **more: Any) -> VideoAnswer:
        """Answer a question as ``ask`` does, for asynchronous programs."""
        last = None
        async for event in self.aask_stream(question, video, **more):
            last = event
        assert isinstance(last, VideoAnswer)  # noqa: S101 - the last one is the answer
        return last

    # Parts

    def _runner_of(self) -> Runner:
        with self._lock:
            if self._runner is None:
                self._runner = self._open.enter_context(Runner(self._store, self._toolbox))
            return self._runner

    def _view(self, video: VideoNames, as_of_s: float | None) -> MemoryView:
        return view_of_names(self._store, _names(video), _milliseconds(as_of_s))[0]

    def _question(
        self, text: str, video: VideoNames, options: Sequence[str], as_of_s: float | None
    ) -> Question:
        return make_question(self._store, text, _names(video), options, _milliseconds(as_of_s))

    def _answer(self, result: AskResult, asked: Question) -> VideoAnswer:
        return VideoAnswer(result, asked, self._store)


def _names(video: VideoNames) -> tuple[str, ...]:
    return () if video is None else (video,) if isinstance(video, str) else tuple(video)


def _milliseconds(seconds: float | None) -> int | None:
    if seconds is not None and seconds < 0:
        raise InputError("a time before the beginning of a video")
    return None if seconds is None else round(seconds * 1000)


def _raise_all(errors: Sequence[Exception]) -> None:
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup("several sources could not be watched", errors)
