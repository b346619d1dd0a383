"""``homer ingest``: watch files and folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli.console import note, say, say_json
from cli.options import Json, Profile, read_lines
from cli.progress import meter
from domain.errors import InputError
from domain.words import plain_line
from library.params import split_names
from library.progress import STOPPED, Reporter
from store.home import Home
from store.progress import Meter

if TYPE_CHECKING:
    from flows.estimate import IngestEstimate
    from flows.ingest_files import FileOutcome


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
    from cli.render import render
    from flows.addresses import find_files
    from flows.estimate import estimate_file, sum_of
    from flows.ingest_files import watch_files
    from flows.workspace import open_workspace
    from library.watching import rows_of
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
                raise typer.Exit(_estimate(files, estimate, sum_of, as_json=json))
            found = watch_files(
                workspace,
                files,
                Reporter(bar),
                direct=direct,
                again=again,
                subtitles=subtitles,
                audio_track=audio_track,
            )
            rows = rows_of(workspace.store, _report_errors(found, bar), unfetched)
            build_index(workspace.store, bar)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(STOPPED) from stop
    render(rows, json=json, empty="there is no video or audio file in there")
    raise typer.Exit(max((row.exit_code for row in rows), default=0))


def _report_errors(outcomes: Iterable[FileOutcome], bar: Meter) -> Iterator[FileOutcome]:
    """Yield the outcomes as they come, and print the errors among them."""
    for outcome in outcomes:
        if outcome.error is not None:
            bar.say(f"homer: {outcome.error}")
        yield outcome


def _estimate(
    files: list[Path],
    estimate: Callable[[Path], IngestEstimate],
    sum_of: Callable[[list[IngestEstimate]], IngestEstimate],
    *,
    as_json: bool,
) -> int:
    """Print what watching the files will take; return the exit code."""
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


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(no_args_is_help=True)(ingest)
