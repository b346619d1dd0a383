"""What takes a video, or a part of it, out of the library: into a file, or for good."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field

from domain.base import Frozen
from domain.errors import Busy, InputError, NotFound
from domain.rights import Deed
from domain.time import TimeSpan, format_clock
from domain.words import counted, format_span, plain_line
from flows.removal import (
    DeletedVideo,
    VideoReduction,
    delete_video_span,
    preview_span_deletion,
    preview_video_deletion,
)
from flows.removal import delete_video as delete_whole
from flows.removal import retain as reduce
from flows.video_file import cut_moment
from flows.video_locks import watched_videos
from flows.workspace import Workspace, open_workspace
from library.params import (
    Confirm,
    OnCommandLine,
    Page,
    Time,
    VideoName,
    agreed,
)
from store.database import Store
from store.export import export_video as write_export
from store.queries.rights import record_deed
from store.queries.videos import find_video, known_video

LONGEST_MS = 10**14
"""No video is that long."""


class Cut(Frozen):
    """What was cut out of a video: its span, and whether it was copied, not encoded anew."""

    file: Path
    span: TimeSpan
    copied: bool


def export_video(
    store: Store,
    video: VideoName,
    out: Annotated[
        Path,
        Field(description="Zip file to write."),
        OnCommandLine("--out", metavar="FILE", only=True),
    ],
) -> str:
    """Export a video to a zip file: rows, vectors, images and answers.

    'homer import' reads it. The video file itself is not in it.

    Examples:
      homer export talk --out talk.zip

    Raises:
        NotFound: there is no such video.
    """
    with store.begin(snapshot=True) as session:
        known = find_video(session, video).id
    write_export(store, known, out)
    with store.begin() as session:
        record_deed(session, Deed.EXPORTED, known)
    return f"{out}: {out.stat().st_size / 1e6:.1f} MB"


def cut_clip(
    store: Store,
    video: VideoName,
    begin: Annotated[
        Time, Field(description="The start, such as 12:30."), OnCommandLine(metavar="FROM")
    ],
    end: Annotated[Time, Field(description="The end, such as 12:45."), OnCommandLine(metavar="TO")],
    out: Annotated[
        Path,
        Field(description="MP4 file to write."),
        OnCommandLine("--out", metavar="FILE", only=True),
    ],
) -> Cut:
    """Cut a moment out of a video into a file of its own.

    The file is MP4, with sound. Both are copied as they are where a picture that stands alone lies
    within the second before FROM: the file begins with that one. Else they are encoded again.

    Examples:
      homer clip talk 12:30 12:45 --out budget.mp4
      homer clip 3f2a 1:02:10 1:03:00 --out goal.mp4

    Raises:
        NotFound: there is no such video.
        InputError: it has no file or recording here, or ends before the span.
    """
    cut = cut_moment(store, video, _span(begin, end), out)
    return Cut(file=out, span=cut.span, copied=cut.copied)


def _span(begin: int | None, end: int | None) -> TimeSpan:
    start, stop = begin or 0, LONGEST_MS if end is None else end
    if stop <= start:
        raise InputError(
            f"the end, {format_clock(stop)}, is not after the start, {format_clock(start)}"
        )
    return TimeSpan.of(start, stop)


def delete_video(
    store: Store,
    video: VideoName,
    begin: Annotated[
        Time | None,
        Field(description="Delete only a span, from this time. Default: the start."),
        OnCommandLine("--from", metavar="MM:SS"),
    ] = None,
    end: Annotated[
        Time | None,
        Field(description="The end of the span. Default: the end of the video."),
        OnCommandLine("--to", metavar="MM:SS"),
    ] = None,
    profile: Annotated[
        str | None,
        Field(description="The models that write anew what a span leaves. Default: the video's."),
        OnCommandLine("--profile", "-p", metavar="NAME|FILE", only=True),
    ] = None,
    confirm: Confirm = agreed,
) -> str:
    """Delete a video, or a span of it, from memory.

    A video is deleted with its rows, vectors, images and answers. A file uploaded to the app is
    deleted too; a file of your own is not touched.

    With --from or --to, all clips that the span touches are deleted, with every answer that used
    them. They are not watched again.

    Examples:
      homer delete talk --yes
      homer delete talk --from 12:00 --to 14:30

    Raises:
        NotFound: there is no such video.
        InputError: the span is empty, or beyond the video's end.
    """
    if begin is None and end is None:
        whole = preview_video_deletion(store, video)
        named = f"{plain_line(whole.video.title)} ({whole.video.id})"
        confirm(f"Delete {named} from memory? {whole.file}")
        deleted = delete_whole(store, whole.video.id)
        uploads = [f"its upload was deleted too: {path}" for path in deleted.uploads]
        return "\n".join(map(plain_line, [f"{deleted.title} is deleted", *uploads]))
    span = _span(begin, end)
    found = preview_span_deletion(store, video, span)
    cut, named = found.cut, plain_line(found.cut.video.title)
    answers = f"{counted(len(cut.clips), 'clip')}, with every answer that was shown any of them"
    what = f"{format_span(cut.span)} of {named} ({answers})"
    confirm(f"Delete {what}? It cannot be undone. {found.file}")
    with open_workspace(profile or cut.video.profile, store.home) as workspace:
        removed = delete_video_span(workspace, cut.video, span)
    return (
        f"{format_span(cut.span)} of {named} is deleted: {counted(removed.clips, 'clip')}, "
        f"{counted(removed.images, 'image')}, {counted(removed.people, 'person')}, "
        f"{counted(removed.answers, 'answer')}; {counted(removed.rewritten, 'text')} rewritten"
    )


def delete_video_by_id(
    store: Store,
    video: Annotated[str, Field(pattern="^[0-9a-f]{16}$", description="Its whole id.")],
) -> DeletedVideo:
    """Delete the memory of a video: rows, vectors, images, and answers that used it.

    It cannot be undone, so it requires the whole id. A file of your own is not touched; a file that
    was uploaded to the app is deleted. `homer audit` records who deleted it.

    Raises:
        NotFound: there is no video of that id.
        Busy: it is being watched.
    """
    with store.begin() as session:
        if known_video(session, video) is None:
            raise NotFound(f"no video has the id {video!r}")
    if video in watched_videos(store):
        raise Busy("this video is being watched: wait until it is done, or pause it")
    return delete_whole(store, video)


def retain(
    workspace: Workspace,
    dry_run: Annotated[
        bool, Field(description="Only show what would be deleted, and how many bytes.")
    ] = False,
    confirm: Confirm = agreed,
) -> Page[VideoReduction]:
    """Delete data of old videos, by the retention tiers of the profile.

    Without tiers nothing is deleted. A tier, [[settings.retain.tiers]], has after_days and keep =
    "fewer" (images), "text" or "nothing". It cannot be undone. Images that an answer cites are
    kept as long as the answer.

    Examples:
      homer retain --dry-run
      homer retain --yes
    """
    if not workspace.settings.retain.tiers:
        note = "no retention tier is set: see [[settings.retain.tiers]] in docs/privacy.md"
        return Page(items=(), total=0, notes=(note,))
    now = datetime.now(UTC)
    found = reduce(workspace, now, dry_run=True)
    if found.videos and not dry_run:
        size, videos = f"{found.bytes / 1e6:.1f} MB", counted(len(found.videos), "video")
        confirm(f"Delete {size} of {videos}? It cannot be undone")
        found = reduce(workspace, now)
    notes = () if found.videos else ("nothing is old enough",)
    return Page(items=found.videos, total=len(found.videos), notes=notes)
