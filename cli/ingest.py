"""``homer ingest``: watch files and folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.console import note, say, say_json
from cli.options import Json, Profile, read_lines
from cli.progress import meter
from domain.errors import InputError
from domain.words import counted, plain_line
from library.params import split_names
from store.home import Home
from store.progress import Meter

if TYPE_CHECKING:
    from domain.media import Video
    from flows.addresses import Fetched
    from flows.estimate import IngestEstimate
    from flows.ingest_files import FileOutcome
    from library.usage import IngestUsage
    from store.database import Store


STOPPED = "stopped; nothing is lost: run the same command to continue"


Subtitles = Annotated[
    Literal["use", "ignore"] | None,
    typer.Option(
        help="Whether to store the video's own subtitles and chapters. Default: as set, ignore."
    ),
]
Track = Annotated[
    int | None,
    typer.Option(
        "--audio-track",
        min=1,
        metavar="N",
        help="The track of sound to hear, where there are several. Default: the one with most "
        "speech; 'homer show' lists the others.",
    ),
]


def ingest(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Media files, folders, http(s) addresses, or @FILE: a file with such lines.",
        ),
    ],
    profile: Profile = None,
    direct: Annotated[
        bool, typer.Option("--direct", help="Run in this process, without Prefect's server.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Also retry clips that have failed three times.")
    ] = False,
    subtitles: Subtitles = None,
    audio_track: Track = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Number of clips perceived in parallel. Default: as set, 1."),
    ] = None,
    pool: Annotated[
        Literal["threads", "processes", "dask", "ray"] | None,
        typer.Option(help="What the workers are. The resulting memory is the same."),
    ] = None,
    clip_view: Annotated[
        Literal["keyframes", "frames", "video"] | None,
        typer.Option(help="What a language model is shown of each clip. Default: as set."),
    ] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option(
            "--memory",
            metavar="NAME,...",
            help="Build the memory of these strategies: see 'homer strategies'. Repeatable. "
            "Default: as set, else that of the default strategy.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what it will cost and how long it will take, and end."),
    ] = False,
    public_only: Annotated[
        bool,
        typer.Option("--public-only", help="Refuse an address of a host that is not public."),
    ] = False,
    json: Json = False,
) -> None:
    """Watch video files and store what was said, read and seen.

    A video that is already in memory is skipped. After an interruption, the same command resumes
    with the next clip.

    A video at an address is fetched first; fetch only what you have the right to copy. Pages of
    videos need yt-dlp (docs/commands.md, Addresses).

    \b
    Examples:
      homer ingest talk.mp4
      homer ingest ~/Videos --direct --subtitles use
      homer ingest talk.mp4 --profile gemini --dry-run
      homer ingest https://example.org/talk.mp4
    """
    # More than a second of imports, which help and usage errors do without.
    from flows.addresses import find_files
    from flows.estimate import estimate_file
    from flows.ingest_files import watch_files
    from flows.workspace import open_workspace
    from store.vector_index import build_index

    with meter() as bar:
        files, unfetched = find_files(
            Home.default(), read_lines(sources), public_only=public_only, progress=bar, warn=bar.say
        )
    try:
        with open_workspace(profile) as opened, meter() as bar:
            workspace = opened.with_workers(workers, pool).with_clip_view(clip_view)
            workspace = workspace.with_memory_of(split_names(memory))
            if dry_run:
                estimate = partial(estimate_file, workspace, again=again, subtitles=subtitles)
                raise typer.Exit(_estimate(files, estimate, as_json=json))
            found = watch_files(
                workspace,
                files,
                Reporter(bar),
                direct=direct,
                again=again,
                subtitles=subtitles,
                audio_track=audio_track,
            )
            outcomes = list(_report_errors(found, bar))
            build_index(workspace.store, bar)
            usages = _usages(workspace.store, outcomes)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(STOPPED) from stop
    show_outcomes(outcomes, usages, unfetched, as_json=json)
    codes = [outcome.exit_code for outcome in outcomes]
    codes += [one.error.exit_code for one in unfetched if one.error is not None]
    raise typer.Exit(max(codes, default=0))


class Reporter:
    """Shows the progress of a flow on a meter."""

    def __init__(self, bar: Meter) -> None:
        self._bar = bar

    def opened(self, video: Video, clips: int, done: int) -> None:
        """Start on a video."""
        if done:
            self._bar.say(f"{plain_line(video.title)}: going on after {done} of {clips} clips")
        self._bar.start(video.title, clips, done)

    def remembered(self, video: Video, clip: int) -> None:
        """Count a clip that is in memory."""
        del video, clip
        self._bar.step()

    def failed(self, video: Video, clip: int, error: Exception) -> None:
        """Count a clip that failed, and print why."""
        self._bar.say(f"{plain_line(video.title)}: clip {clip} failed: {error}")
        self._bar.step()

    def said(self, text: str) -> None:
        """Print another message."""
        self._bar.say(text)


def _usages(store: Store, outcomes: list[FileOutcome]) -> dict[str, IngestUsage]:
    """Return what language models took for each video of which clips were watched."""
    # Like the flows, it takes long to import.
    from library.usage import ingest_usage

    watched = [outcome.watched for outcome in outcomes if outcome.watched is not None]
    return {one.video.id: ingest_usage(store, one.video.id) for one in watched if one.fresh}


def _report_errors(outcomes: Iterable[FileOutcome], bar: Meter) -> Iterator[FileOutcome]:
    """Yield the outcomes as they come, and print the errors among them."""
    for outcome in outcomes:
        if outcome.error is not None:
            bar.say(f"homer: {outcome.error}")
        yield outcome


def _estimate(
    files: list[Path], estimate: Callable[[Path], IngestEstimate], *, as_json: bool
) -> int:
    """Print what watching the files will take; return the exit code."""
    # It takes more than a second to import, which help and usage errors do without.
    from flows.estimate import sum_of

    code, estimates = 0, []
    for path in files:
        try:
            estimates.append(estimate(path))
        except InputError as error:
            note(f"homer: {error}")
            code = error.exit_code
    if as_json:
        say_json([one.model_dump(mode="json") for one in estimates])
    else:
        for one in estimates:
            say(plain_line(str(one)))
        if len(estimates) > 1:
            say(plain_line(str(sum_of(estimates))))
    return code


def show_outcomes(
    outcomes: list[FileOutcome],
    usages: Mapping[str, IngestUsage] = MappingProxyType({}),
    unfetched: Sequence[Fetched] = (),
    *,
    as_json: bool,
) -> None:
    """Print the outcome of each file and what language models took for it.

    In JSON also the addresses that failed.
    """
    if as_json:
        addresses = [{"url": one.shown_url, "error": str(one.error)} for one in unfetched]
        return say_json([*map(_as_json, outcomes), *addresses])
    for outcome in outcomes:
        if outcome.watched is not None:
            used = str(usages.get(outcome.watched.video.id, ""))
            say(_line(outcome) + (f"; {used}" if used else ""))
    if not outcomes and not unfetched:
        note("there is no video or audio file in there")
    return None


def _line(outcome: FileOutcome) -> str:
    watched = outcome.watched
    assert watched is not None  # noqa: S101 - the caller looks
    title, known = (
        plain_line(watched.video.title),
        f"{counted(watched.clips, 'clip')}, id {watched.video.id}",
    )
    if watched.failed:
        return f"{title}: {watched.failed} of {known} failed; the same command tries them again"
    if not watched.fresh:
        return f"{title}: already watched ({known})"
    return f"{title}: watched ({known})"


def _as_json(outcome: FileOutcome) -> dict[str, Any]:
    watched = outcome.watched
    row: dict[str, Any] = {"path": str(outcome.path)}
    if watched is not None:
        row |= {"video": watched.video.id, "title": watched.video.title, "clips": watched.clips}
        row |= {"fresh": watched.fresh, "failed": watched.failed}
    return row | ({"error": str(outcome.error)} if outcome.error else {})


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(no_args_is_help=True)(ingest)
