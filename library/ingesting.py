"""Watching what a user names: files, folders and addresses, or a live source as it comes.

Progress of videos coming into memory and of evaluations is here too. The flows are slow to import:
help does without them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field

from domain.errors import InputError
from domain.later import Later
from domain.media import Video
from domain.settings import ClipViewKind, Pool, Subtitles
from domain.watching import IngestEstimate, Watched
from domain.words import plain_line
from library.params import Direct, OnCommandLine, ProfileName, read_lines, split_names
from store.home import Home
from store.progress import SILENT, Meter, import_progress

if TYPE_CHECKING:
    from domain.evaluation import Verdict
    from flows import addresses, build, estimate, live_stream, workspace
    from flows import watching as watcher
    from library import watching
    from perception import live
    from store import vector_index
    from store.queries.evaluations import Slot
    from strategies import registry
else:
    # More than a second of imports, which help and usage errors do without.
    addresses, build = Later("flows.addresses"), Later("flows.build")
    estimate = Later("flows.estimate")
    watcher, live_stream = Later("flows.watching"), Later("flows.live_stream")
    workspace, watching = Later("flows.workspace"), Later("library.watching")
    live, vector_index = Later("perception.live"), Later("store.vector_index")
    registry = Later("strategies.registry")


Sources = Annotated[
    tuple[str, ...],
    BeforeValidator(read_lines),
    Field(description="Media files, folders, http(s) addresses, or @FILE: a file with such lines."),
    OnCommandLine(metavar="SOURCE..."),
]
SubtitlesUsed = Annotated[
    Subtitles | None,
    Field(
        description="Whether to store the video's own subtitles and chapters. Default: as set, "
        "ignore."
    ),
]
Track = Annotated[
    int | None,
    Field(
        ge=1,
        description="The track of sound to hear, where there are several. Default: the one "
        "with most speech; 'homer show' lists the others.",
    ),
    OnCommandLine(metavar="N"),
]


def ingest(
    home: Home,
    sources: Sources,
    profile: ProfileName = None,
    direct: Direct = False,
    again: Annotated[
        bool, Field(description="Also retry clips that have failed three times.")
    ] = False,
    subtitles: SubtitlesUsed = None,
    audio_track: Track = None,
    workers: Annotated[
        int | None,
        Field(ge=1, description="Number of clips perceived in parallel. Default: as set, 1."),
        OnCommandLine(metavar="N"),
    ] = None,
    pool: Annotated[
        Pool | None,
        Field(description="What the workers are. The resulting memory is the same."),
    ] = None,
    clip_view: Annotated[
        ClipViewKind | None,
        Field(description="What a language model is shown of each clip. Default: as set."),
    ] = None,
    memory: Annotated[
        tuple[str, ...],
        BeforeValidator(split_names),
        Field(
            description="Build the memory of these strategies: see 'homer strategies'. Repeatable. "
            "Default: as set, else that of the default strategy."
        ),
        OnCommandLine(metavar="NAME,..."),
    ] = (),
    dry_run: Annotated[
        bool, Field(description="Say what it will cost and how long it will take, and end.")
    ] = False,
    public_only: Annotated[
        bool, Field(description="Refuse an address of a host that is not public.")
    ] = False,
    progress: Meter = SILENT,
    opened: workspace.Workspace | None = None,
) -> list[Watched] | list[IngestEstimate]:
    """Watch video files and store what was said, read and seen.

    A video that is already in memory is skipped. After an interruption, the same command resumes
    with the next clip.

    A video at an address is fetched first; fetch only what you have the right to copy. Pages of
    videos need yt-dlp (docs/commands.md, Addresses).

    Examples:
      homer ingest talk.mp4
      homer ingest ~/Videos --direct --subtitles use
      homer ingest talk.mp4 --profile gemini --dry-run
      homer ingest https://example.org/talk.mp4

    Raises:
        InputError: a file or folder does not exist, or a setting is wrong. What is wrong with one
            of several files is in its row, and the others are watched.
        SetupError: the database, a model or the worker pool is missing.
    """
    try:
        files, unfetched = addresses.find_files(
            home, sources, public_only=public_only, progress=progress, warn=progress.say
        )
        with workspace.workspace_of(opened, profile, home) as found:
            chosen = found.with_workers(workers, pool).with_clip_view(clip_view)
            chosen = chosen.with_memory_of(memory)
            if dry_run:
                return [
                    _estimate(chosen, path, again=again, subtitles=subtitles, progress=progress)
                    for path in files
                ]
            rows = list[Watched]()
            for outcome in watcher.watch_files(
                chosen,
                files,
                Reporter(progress),
                direct=direct,
                again=again,
                subtitles=subtitles,
                audio_track=audio_track,
            ):
                # A file that fails is told of, and the others go on.
                if outcome.error:
                    progress.say(f"homer: {outcome.error}")
                rows.append(watching.with_usage(outcome, chosen.store))
            vector_index.build_index(chosen.store, progress)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(STOPPED) from stop
    # Addresses that could not be fetched are rows too.
    return rows + [Watched.failing(one.shown_url, one.error) for one in unfetched if one.error]


def _estimate(
    chosen: workspace.Workspace,
    path: Path,
    *,
    again: bool,
    subtitles: Subtitles | None,
    progress: Meter,
) -> IngestEstimate:
    try:
        return estimate.estimate_file(chosen, path, again=again, subtitles=subtitles)
    except InputError as error:
        progress.say(f"homer: {error}")
        why = str(error)
        return IngestEstimate(title=path.stem, clips=0, error=why, exit_code=error.exit_code)


def watch(
    home: Home,
    source: Annotated[
        str,
        BeforeValidator(lambda given: read_lines(given)[0]),
        Field(
            description="rtsp://, http(s):// (HLS), a camera (/dev/video0), a FIFO, - for stdin, "
            "or @FILE with the address."
        ),
        OnCommandLine(metavar="SOURCE"),
    ],
    title: Annotated[
        str,
        Field(
            description="Title of the video. The same source under another title is another video."
        ),
        OnCommandLine("--title", "-t", metavar="TEXT"),
    ] = "",
    profile: ProfileName = None,
    direct: Direct = False,
    away_s: Annotated[
        float | None,
        Field(
            ge=0,
            description="End after so long without a connection. Default: reconnect without end.",
        ),
        OnCommandLine("--away", metavar="SECONDS"),
    ] = None,
    memory: Annotated[
        tuple[str, ...],
        BeforeValidator(split_names),
        Field(
            description="Keep the frames of these strategies, and build what is built while "
            "watching: see 'homer strategies'. 'homer build' builds the rest. Repeatable. Default: "
            "as set."
        ),
        OnCommandLine(metavar="NAME,..."),
    ] = (),
    record: Annotated[
        bool,
        Field(description="Store what comes as well, so that cited moments can be played."),
    ] = False,
    progress: Meter = SILENT,
    opened: workspace.Workspace | None = None,
    stop: Event | None = None,
) -> Watched:
    """Watch a live source: a camera, an RTSP or HLS stream, or a pipe.

    Questions can be asked meanwhile. Ctrl-C ends the stream after storing what has arrived. The
    same command resumes it later, as the same video with a gap.

    Examples:
      homer watch rtsp://camera.local/live --title entrance
      homer watch /dev/video0 --away 600 --record
      ffmpeg ... | homer watch - --title talk

    Raises:
        InputError: the source is none of these, or a strategy builds no memory.
        SetupError: it cannot be reached, or the database or a model is missing.
    """
    named = live.live_source(source, title)
    with workspace.workspace_of(opened, profile, home) as found:
        chosen = found.with_memory_of(memory)
        chosen = chosen.with_recording() if record else chosen
        for name in chosen.settings.memory.strategies:
            # Before the source is opened: a wrong name is told at once.
            build.check_builds(registry.find_strategy(name))
        reporter = LiveReporter(lambda text: progress.say(plain_line(text)))
        with live_stream.open_stream(
            chosen, named, stop=stop or Event(), said=reporter.said, away_s=away_s
        ) as work:
            ended = live_stream.watch_stream(work, reporter, direct=direct)
            state = work.state()
    return Watched(
        path=named.name,
        video=named.id,
        title=named.label,
        clips=state.clips,
        fresh=work.fresh,
        failed=state.failed,
        ended=ended,
    )


# Progress, for commands and programs.


STOPPED = "stopped; nothing is lost: run the same command to continue"


class Reporter:
    """Shows the progress of a flow on a meter."""

    def __init__(self, bar: Meter) -> None:
        self._bar = bar

    def opened(self, video: Video, clips: int, done: int) -> None:
        if done:
            self._bar.say(f"{plain_line(video.title)}: going on after {done} of {clips} clips")
        self._bar.start(video.title, clips, done)

    def remembered(self, video: Video, clip: int) -> None:
        del video, clip
        self._bar.step()

    def failed(self, video: Video, clip: int, error: Exception) -> None:
        self._bar.say(f"{plain_line(video.title)}: clip {clip} failed: {error}")
        self._bar.step()

    def said(self, text: str) -> None:
        self._bar.say(text)


class EvalReporter(Reporter):
    """Shows the progress of an evaluation on a meter."""

    def __init__(self, bar: Meter) -> None:
        super().__init__(bar)
        self._imports: dict[str, Callable[[int, int], None]] = {}

    def importing(self, video: str, done: int, total: int) -> None:
        """Show how many clips of captions are in memory."""
        self._imports.setdefault(video, import_progress(self._bar, video))(done, total)

    def asking(self, total: int, done: int) -> None:
        self._bar.start("answers", total, done)

    def judged(self, slot: Slot, verdict: Verdict, cost_usd: float) -> None:
        if verdict.failed:
            self._bar.say(f"homer: question {plain_line(slot.question)}: {plain_line(verdict.why)}")
        if cost_usd:
            self._bar.aside(f"{cost_usd:.2f} dollars so far")
        self._bar.step()


class LiveReporter:
    """Says a line for each clip of a stream, which comes every half minute.

    Args:
        said: says a line.
    """

    def __init__(self, said: Callable[[str], None]) -> None:
        self.said = said

    def opened(self, video: Video, clips: int, done: int) -> None:
        """Say that the stream is being watched."""
        del done
        resumed = f", going on after {clips} clips" if clips else ""
        self.said(f"watching {video.title} (id {video.id}){resumed}")

    def remembered(self, video: Video, clip: int) -> None:
        self.said(f"{video.title}: clip {clip} is in memory")

    def failed(self, video: Video, clip: int, error: Exception) -> None:
        self.said(f"{video.title}: clip {clip} is lost: {error}")
