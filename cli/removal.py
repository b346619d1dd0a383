"""``homer delete`` and ``homer retain``: what is removed, at once or by age."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from cli.console import confirm, note, say, say_json, say_table
from cli.options import Json, OneVideo, Profile, parse_span
from flows.delete import (
    delete_video,
    delete_video_span,
    preview_span_deletion,
    preview_video_deletion,
)
from flows.retention import retain as apply_retention
from flows.workspace import open_workspace
from store.database import open_store
from store.home import Home
from views.words import counted, format_span, plain_line

Begin = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="MM:SS", help="Delete only a span, from this time. Default: the start."
    ),
]
End = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="MM:SS", help="The end of the span. Default: the end of the video."
    ),
]


def delete(
    video: OneVideo,
    begin: Begin = None,
    end: End = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    profile: Profile = None,
) -> None:
    """Delete a video, or a span of it, from memory.

    A video is deleted with its rows, vectors, images and answers. A file uploaded to the app is
    deleted too; a file of your own is not touched.

    With --from or --to, all clips that the span touches are deleted, with every answer that used
    them. They are not watched again.

    \b
    Examples:
      homer delete talk --yes
      homer delete talk --from 12:00 --to 14:30
    """
    if begin is not None or end is not None:
        return _delete_span(video, begin, end, yes, profile)
    with open_store(Home.default()) as store:
        found = preview_video_deletion(store, video)
        if not yes:
            named = f"{plain_line(found.video.title)} ({found.video.id})"
            confirm(f"Delete {named} from memory? {found.file}")
        deleted = delete_video(store, found.video.id)
    say(f"{plain_line(deleted.video.title)} is deleted")
    for path in deleted.uploads:
        say(f"its upload was deleted too: {plain_line(str(path))}")
    return None


def _delete_span(
    video: str, begin: str | None, end: str | None, yes: bool, profile: str | None
) -> None:
    span = parse_span(begin, end)
    with open_store(Home.default()) as store:
        found = preview_span_deletion(store, video, span)
    cut, named = found.cut, plain_line(found.cut.video.title)
    if not yes:
        clips = f"{counted(len(cut.clips), 'clip')}, with every answer that was shown any of them"
        what = f"{format_span(cut.span)} of {named} ({clips})"
        confirm(f"Delete {what}? It cannot be undone. {found.file}")
    with open_workspace(profile or cut.video.profile) as workspace:
        removed = delete_video_span(workspace, cut.video, span)
    say(
        f"{format_span(cut.span)} of {named} is deleted: {counted(removed.clips, 'clip')}, "
        f"{counted(removed.images, 'image')}, {counted(removed.people, 'person')}, "
        f"{counted(removed.answers, 'answer')}; {counted(removed.rewritten, 'text')} rewritten"
    )


def retain(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be deleted, and how many bytes.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Delete data of old videos, by the retention tiers of the profile.

    Without tiers nothing is deleted. A tier, [[settings.retain.tiers]], has after_days and keep =
    "fewer" (images), "text" or "nothing". It cannot be undone. Images that an answer cites are
    kept as long as the answer.

    \b
    Examples:
      homer retain --dry-run
      homer retain --yes
    """
    with open_workspace(profile) as workspace:
        if not workspace.settings.retain.tiers:
            return note(
                "no retention tier is set: see [[settings.retain.tiers]] in docs/privacy.md"
            )
        now = datetime.now(UTC)
        found = apply_retention(workspace, now, dry_run=True)
        if found.videos and not dry_run:
            if not yes:
                size, videos = f"{found.bytes / 1e6:.1f} MB", counted(len(found.videos), "video")
                confirm(f"Delete {size} of {videos}? It cannot be undone")
            found = apply_retention(workspace, now)
    if json:
        return say_json([asdict(video) for video in found.videos])
    if not found.videos:
        return note("nothing is old enough")
    rows = (
        (
            video.video,
            plain_line(video.title),
            video.keep,
            video.images,
            video.smaller,
            f"{video.bytes / 1e6:.2f}",
        )
        for video in found.videos
    )
    return say_table(("id", "title", "keeps", "images deleted", "smaller", "MB"), rows)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(no_args_is_help=True)(delete)
    app.command()(retain)
