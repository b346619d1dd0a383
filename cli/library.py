"""``homer videos``, ``show``, ``dump``, ``export`` and ``delete``: what is in the library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.console import escaped, note, say, say_json, say_table, sure
from cli.options import AsOf, Json, OneVideo, Profile, parse_as_of, parse_span
from views.words import plain_line


def videos(json: Json = False) -> None:
    """List the videos in the library; one that nothing watches any more is paused."""
    from domain.time import format_clock
    from flows.video_locks import watched_videos, with_current_state
    from store.database import open_store
    from store.home import Home
    from views.library import list_library

    with open_store(Home.default()) as store:
        busy = watched_videos(store)
        found = [with_current_state(entry, busy) for entry in list_library(store)]
    if json:
        return say_json([entry.model_dump(mode="json") for entry in found])
    if not found:
        return note("nothing has been watched yet: homer ingest FILE")
    rows = (
        (e.id, e.title, format_clock(e.duration_ms), f"{e.done}/{e.clips}", e.state, e.profile)
        for e in found
    )
    return say_table(("id", "title", "length", "clips", "state", "profile"), rows)


def show(video: OneVideo, as_of: AsOf = None, json: Json = False) -> None:
    """Show what is known of a video: its clips, people, segments and edges.

    \b
    Examples:
      homer show talk
      homer show talk --as-of 10:00 --json
    """
    from cli.portrait import show_portrait
    from flows.video_locks import current_state, watched_videos
    from store.database import open_store
    from store.home import Home
    from views.library import show_video

    as_of_ms = parse_as_of(as_of)
    with open_store(Home.default()) as store:
        portrait = show_video(store, video, as_of_ms)
        state = current_state(portrait.video.id, portrait.state, watched_videos(store))
    portrait = portrait.model_copy(update={"state": state})
    say_json(portrait.model_dump(mode="json")) if json else show_portrait(portrait)


def dump(video: OneVideo) -> None:
    """Print all that was learned of a video as canonical JSON lines.

    Two ingestions of one video, in any two databases, give the same bytes.

    \b
    Example:
      homer dump talk | sha256sum
    """
    from store.database import open_store
    from store.home import Home
    from views.library import dump_lines

    with open_store(Home.default()) as store:
        for line in dump_lines(store, video):
            say(escaped(line))


def export(
    video: OneVideo,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The zip file to write.")],
) -> None:
    """Write everything about a video into one zip file: rows, vectors, images, answers.

    \b
    Example:
      homer export talk --out talk.zip
    """
    from store.database import open_store
    from store.home import Home
    from views.library import export_to_file as write

    with open_store(Home.default()) as store:
        write(store, video, out)
    say(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


Begin = Annotated[
    str | None,
    typer.Option("--from", metavar="MM:SS", help="Delete only a span: where it begins."),
]
End = Annotated[
    str | None, typer.Option("--to", metavar="MM:SS", help="Where the span ends; else the end.")
]


def delete(
    video: OneVideo,
    begin: Begin = None,
    end: End = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    profile: Profile = None,
) -> None:
    """Delete a video from memory: every row, vector, image, checkpoint and trajectory of it.

    With --from and --to only that span goes, in whole clips, and every answer that was shown any
    of it; it is never watched again. A file that was uploaded to the app goes too; one of your own
    is not touched.

    \b
    Examples:
      homer delete talk --yes
      homer delete talk --from 12:00 --to 14:30
    """
    from flows.delete import delete_video, preview_video_deletion
    from store.database import open_store
    from store.home import Home

    if begin is not None or end is not None:
        return _delete_span(video, begin, end, yes, profile)
    with open_store(Home.default()) as store:
        found = preview_video_deletion(store, video)
        if not yes:
            named = f"{plain_line(found.video.title)} ({found.video.id})"
            sure(f"Delete {named} from memory? {found.file}")
        done = delete_video(store, found.video.id)
    say(f"{plain_line(done.video.title)} is deleted")
    for path in done.uploads:
        say(f"its upload is gone too: {plain_line(str(path))}")
    return None


def _delete_span(
    video: str, begin: str | None, end: str | None, yes: bool, profile: str | None
) -> None:
    from flows.delete import delete_video_span, preview_span_deletion
    from flows.workspace import open_workspace
    from store.database import open_store
    from store.home import Home

    span = parse_span(begin, end)
    with open_store(Home.default()) as store:
        found = preview_span_deletion(store, video, span)
    cut, named = found.cut, plain_line(found.cut.video.title)
    if not yes:
        clips = f"{len(cut.clips)} clips, with every answer that was shown any of them"
        told = f"Delete {cut.span} of {named} ({clips})? It cannot be undone. {found.file}"
        sure(told)
    with open_workspace(profile or cut.video.profile) as desk:
        gone = delete_video_span(desk, cut.video, span)
    say(
        f"{cut.span} of {named} is deleted: {gone.clips} clips, {gone.images} images, "
        f"{gone.people} people, {gone.answers} answers; {gone.rewritten} texts written anew"
    )


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    app.command()(videos)
    for command in (show, dump, export, delete):
        app.command(no_args_is_help=True)(command)
