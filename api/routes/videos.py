"""The library: videos, what is remembered of each a page at a time, and deleting them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from api.answers import keyframe_path
from api.app_state import ApiState, Desk
from api.params import PAGE, AsOf, Limit, Offset, Page, Words, after, as_of_ms
from domain.errors import Busy, NotFound
from domain.media import Video
from domain.people import tags_in_words
from flows.delete import delete_video
from flows.video_locks import PAUSED, watched_videos
from store.queries.videos import WATCHING, known_video
from views.library import ShownClip, resolve_video
from views.library_view import ListedVideo, page_of_videos, video_holdings
from views.video_view import ShownEdge, load_clips_page, load_graph_page, load_people_page

router = APIRouter(tags=["videos"])
Name = Annotated[
    str, Path(max_length=400, description="The video's id, an unambiguous beginning, or its title.")
]


class VideoTold(BaseModel):
    """A video, and how many of its clips are watched."""

    id: str
    title: str
    duration_s: float
    state: str = Field(description="watching, paused, done or failed")
    profile: str
    clips: int
    done: int
    failed: int


class Videos(Page):
    """A page of the library, by title."""

    videos: list[VideoTold]


class Held(BaseModel):
    """A video, and how much is remembered of it; where its clips, people and events are."""

    id: str
    title: str
    duration_s: float
    width: int
    height: int
    profile: str
    clips: int
    memories: int
    people: int
    events: int
    images: int
    links: dict[str, str]


class LineTold(BaseModel):
    """A line of what was said, read or seen."""

    ref: str
    start_s: float
    end_s: float
    kind: str
    source: str
    text: str


class ClipTold(BaseModel):
    """A clip with what is remembered of it; ``images`` are its keyframes."""

    number: int
    start_s: float
    end_s: float
    state: str
    error: str | None
    lines: list[LineTold]
    images: list[str]


class Clips(Page):
    """A page of clips, in order."""

    clips: list[ClipTold]


class PersonTold(BaseModel):
    """A person of a video: the names known, and the tags of faces and voices."""

    number: int
    label: str
    names: list[str]
    tags: list[str]


class People(Page):
    """A page of people, by number."""

    people: list[PersonTold]


class Joined(BaseModel):
    """How an event is joined to another one."""

    source: str
    relation: str
    target: str
    confidence: float
    rationale: str


class EventTold(BaseModel):
    """An event of a video."""

    ref: str
    label: str
    summary: str
    start_s: float
    end_s: float
    clips: list[int]


class Happened(Page):
    """A page of events by time, and what joins those that are on it."""

    events: list[EventTold]
    edges: list[Joined]


class Deleted(BaseModel):
    """What is gone with a video: its files where Homer kept them, and so many images."""

    id: str
    title: str
    images: int
    uploads: int


@router.get("/videos", summary="The library")
def videos(desk: Desk, offset: Offset = 0, limit: Limit = PAGE, q: Words = "") -> Videos:
    """The videos by title, with how far each is watched."""
    found, total = page_of_videos(desk.store, offset, limit, q)
    busy = watched_videos(desk.store)
    shown = [_told(one, one.id in busy) for one in found]
    return Videos(total=total, offset=offset, next=after(offset, len(shown), total), videos=shown)


def _told(one: ListedVideo, busy: bool) -> VideoTold:
    paused = one.state == WATCHING and not busy
    return VideoTold(
        id=one.id,
        title=one.title,
        duration_s=one.duration_ms / 1000,
        state=PAUSED if paused else one.state,
        profile=one.profile,
        clips=one.clips,
        done=one.done,
        failed=one.failed,
    )


@router.get("/videos/{name}", summary="A video")
def video(desk: Desk, name: Name) -> Held:
    """How much is remembered of a video; `links` lead to its clips, people and events."""
    found, held = video_holdings(desk.store, name)
    parts = ("clips", "people", "events")
    return Held(
        **found.model_dump(include={"id", "title", "width", "height", "profile"}),
        duration_s=found.duration_ms / 1000,
        clips=held.clips,
        memories=held.memories,
        people=held.people,
        events=held.events,
        images=held.images,
        links={part: f"/videos/{found.id}/{part}" for part in parts},
    )


@router.get("/videos/{name}/clips", summary="Its clips")
def clips(
    desk: Desk, name: Name, offset: Offset = 0, limit: Limit = PAGE, as_of: AsOf = None
) -> Clips:
    """The clips in order, with what was said, read and seen in each, and its keyframes."""
    at, one = as_of_ms(as_of), _video(desk, name)
    found = load_clips_page(desk.store, one, offset, limit, at)
    images = {
        number: [keyframe_path(one.id, frame.id) for frame in frames]
        for number, frames in found.frames.items()
    }
    shown = [_clip(clip, images.get(clip.index, [])) for clip in found.clips]
    end = after(offset, len(shown), found.total)
    return Clips(total=found.total, offset=offset, next=end, clips=shown)


def _clip(one: ShownClip, images: list[str]) -> ClipTold:
    lines = [
        LineTold(
            ref=f"m{line.id}",
            start_s=line.span.start_ms / 1000,
            end_s=line.span.end_ms / 1000,
            kind=line.kind,
            source=line.source,
            text=tags_in_words(line.text),
        )
        for line in one.lines
    ]
    return ClipTold(
        number=one.index,
        start_s=one.span.start_ms / 1000,
        end_s=one.span.end_ms / 1000,
        state=one.state,
        error=one.error,
        lines=lines,
        images=images,
    )


@router.get("/videos/{name}/people", summary="Its people")
def people(
    desk: Desk, name: Name, offset: Offset = 0, limit: Limit = PAGE, as_of: AsOf = None
) -> People:
    """Who is in the video, with all names that are known."""
    found = load_people_page(desk.store, _video(desk, name).id, offset, limit, as_of_ms(as_of))
    shown = [
        PersonTold(
            number=one.number,
            label=tags_in_words(one.label),
            names=[known.name for known in one.names],
            tags=list(one.tags),
        )
        for one in found.people
    ]
    end = after(offset, len(shown), found.total)
    return People(total=found.total, offset=offset, next=end, people=shown)


@router.get("/videos/{name}/events", summary="Its events")
def events(
    desk: Desk, name: Name, offset: Offset = 0, limit: Limit = PAGE, as_of: AsOf = None
) -> Happened:
    """What went on, by time, and how the events of this page are joined."""
    found = load_graph_page(desk.store, _video(desk, name).id, offset, limit, as_of_ms(as_of))
    shown = [
        EventTold(
            ref=f"s{one.id}",
            label=tags_in_words(one.label),
            summary=tags_in_words(one.summary),
            start_s=one.span.start_ms / 1000,
            end_s=one.span.end_ms / 1000,
            clips=list(one.clips),
        )
        for one in found.segments
    ]
    edges = [_joined(one) for one in found.links]
    end = after(offset, len(shown), found.total)
    return Happened(total=found.total, offset=offset, next=end, events=shown, edges=edges)


def _joined(one: ShownEdge) -> Joined:
    edge = one.edge
    return Joined(
        source=f"s{edge.source}",
        relation=str(edge.relation),
        target=f"s{edge.target}",
        confidence=edge.confidence,
        rationale=tags_in_words(edge.rationale),
    )


@router.delete("/videos/{video}", summary="Delete a video")
def delete(
    desk: Desk, video: Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="Its whole id.")]
) -> Deleted:
    """Delete all that is remembered of a video: rows, vectors, images, and answers that saw it.

    It cannot be undone, so only the whole id will do. A file of your own stays where it is; one
    that was uploaded to the app goes too. `homer audit` says who did it.
    """
    with desk.store.begin() as session:
        if known_video(session, video) is None:
            raise NotFound(f"no video has the id {video!r}")
    if video in watched_videos(desk.store):
        raise Busy("this video is being watched: wait until it is done, or have it paused")
    done = delete_video(desk.store, video)
    title = done.video.title
    return Deleted(id=video, title=title, images=done.images, uploads=len(done.uploads))


def _video(desk: ApiState, name: str) -> Video:
    with desk.store.begin() as session:
        return resolve_video(session, name)
