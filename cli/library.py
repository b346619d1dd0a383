"""``homer videos``, ``show``, ``dump``, ``export`` and ``check``: what is in the library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.console import escaped, note, say, say_json, say_table
from cli.options import AsOf, Json, OneVideo, parse_as_of
from cli.portrait import show_portrait
from cli.progress import meter
from flows.stream.interrupted import end_interrupted_streams
from flows.video_locks import current_state, watched_videos, with_current_state
from retrieval.search_cost import searches_so_far
from store.database import open_store
from store.home import Home
from views.library import (
    VideoCheck,
    check_video,
    dump_lines,
    export_to_file,
    list_library,
    show_video,
)
from views.words import format_time, plain_line

INCONSISTENT = 1
"""Exit code of ``homer check`` where something is found."""


def videos(json: Json = False) -> None:
    """List the videos in the library.

    The state "paused" means that clips are missing and no process is watching the video.

    \b
    Examples:
      homer videos
      homer videos --json
    """
    with open_store(Home.default()) as store:
        busy = watched_videos(store)
        found = [with_current_state(entry, busy) for entry in list_library(store)]
        searches = searches_so_far(store)
    if json:
        return say_json([entry.model_dump(mode="json") for entry in found])
    if not found:
        return note("nothing has been watched yet: homer ingest FILE")
    rows = (
        (e.id, e.title, format_time(e.duration_ms), f"{e.done}/{e.clips}", e.state, e.profile)
        for e in found
    )
    say_table(("id", "title", "length", "clips", "state", "profile"), rows)
    if searches.requests:
        note(f"single searches took {searches} of an embeddings endpoint so far")
    return None


def show(video: OneVideo, as_of: AsOf = None, json: Json = False) -> None:
    """Show what is in memory of a video: clips, people, segments and edges.

    \b
    Examples:
      homer show talk
      homer show talk --as-of 10:00 --json
    """
    as_of_ms = parse_as_of(as_of)
    with open_store(Home.default()) as store:
        portrait = show_video(store, video, as_of_ms)
        state = current_state(portrait.video.id, portrait.state, watched_videos(store))
    portrait = portrait.model_copy(update={"state": state})
    say_json(portrait.model_dump(mode="json")) if json else show_portrait(portrait)


def dump(video: OneVideo) -> None:
    """Print everything learned from a video as canonical JSON lines.

    Two ingestions of the same video give the same bytes, in any database.

    \b
    Example:
      homer dump talk | sha256sum
    """
    with open_store(Home.default()) as store:
        for line in dump_lines(store, video):
            say(escaped(line))


def export(
    video: OneVideo,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Zip file to write.")],
) -> None:
    """Export a video to a zip file: rows, vectors, images and answers.

    'homer import' reads it. The video file itself is not in it.

    \b
    Example:
      homer export talk --out talk.zip
    """
    with open_store(Home.default()) as store:
        export_to_file(store, video, out)
    say(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


def check(video: OneVideo, as_of: AsOf = None, json: Json = False) -> None:
    """Check the event graph and the stored images of a video for errors.

    It looks for clips without a segment, segments without their clips, edges without their
    segments or evidence, cycles in time, contradicting edges, and images that are missing or
    damaged. The exit code is 1 if it finds any.

    \b
    Examples:
      homer check talk
      homer check talk --as-of 10:00 --json
    """
    as_of_ms = parse_as_of(as_of)
    with open_store(Home.default()) as store:
        end_interrupted_streams(store)
        with meter() as bar:
            checked = check_video(store, video, as_of_ms, bar)
    say_json(checked.model_dump(mode="json")) if json else _show_check(checked)
    raise typer.Exit(INCONSISTENT if checked.findings else 0)


def _show_check(checked: VideoCheck) -> None:
    size = f"{checked.segments} segments, {checked.edges} edges over {checked.clips} clips"
    size += f", {checked.images} images"
    if not checked.findings:
        return say(f"{plain_line(checked.title)}: consistent ({size})")
    say(f"{plain_line(checked.title)}: {len(checked.findings)} findings in {size}")
    for finding in checked.findings:
        say(f"  {finding.fault}: {plain_line(finding.text)}  [{', '.join(finding.refs)}]")
    return None


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(videos)
    for command in (show, dump, export, check):
        app.command(no_args_is_help=True)(command)
