"""The library: list videos and their memory a page at a time, and delete them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from api.app_state import ApiState, State
from api.params import DEFAULT_LIMIT, AsOf, Limit, Offset, Page, TitleQuery, as_of_ms, next_offset
from domain.errors import Busy, NotFound
from domain.media import Video
from domain.people import tags_in_words
from flows.delete import delete_video
from flows.video_locks import PAUSED, watched_videos
from library.moments import image_path
from store.queries.videos import WATCHING, known_video
from views.library import ShownClip, resolve_video
from views.library_view import LibraryEntry, page_of_videos, video_holdings
from views.video_view import ShownEdge, load_clips_page, load_graph_page

router = APIRouter(tags=["videos"])
Name = Annotated[
    str, Path(max_length=400, description="The video's id, an unambiguous beginning, or its title.")
]


class VideoTold(BaseModel):
    """A video, and how many of its clips are done."""

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
    """A video, the size of its memory, and links to its clips, people and events."""

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
    """A memory or utterance: something said, read or seen."""

    ref: str
    start_s: float
    end_s: float
    kind: str
    source: str
    text: str


class KeyframeTold(BaseModel):
    """A keyframe and what it shows; ``image`` is its path."""

    ref: str
    time_s: float
    description: str
    image: str


class ClipTold(BaseModel):
    """A clip with its lines; ``images`` are the paths of its keyframes."""

    number: int
    start_s: float
    end_s: float
    state: str
    error: str | None
    lines: list[LineTold]
    images: list[str]
    keyframes: list[KeyframeTold]


class Clips(Page):
    """A page of clips, in order."""

    clips: list[ClipTold]


class Joined(BaseModel):
    """An edge between two events."""

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
    """A page of events by time, and the edges between them."""

    events: list[EventTold]
    edges: list[Joined]


class Deleted(BaseModel):
    """What was deleted with a video: the number of images and of uploaded files."""

    id: str
    title: str
    images: int
    uploads: int


@router.get("/videos", summary="The library")
def videos(
    state: State, offset: Offset = 0, limit: Limit = DEFAULT_LIMIT, q: TitleQuery = ""
) -> Videos:
    """The videos by title, with their progress."""
    listed, total = page_of_videos(state.store, offset, limit, q)
    busy = watched_videos(state.store)
    shown = [_video_body(video, video.id in busy) for video in listed]
    return Videos(
        total=total, offset=offset, next=next_offset(offset, len(shown), total), videos=shown
    )


def _video_body(video: LibraryEntry, busy: bool) -> VideoTold:
    paused = video.state == WATCHING and not busy
    return VideoTold(
        **video.model_dump(include={"id", "title", "profile", "clips", "done", "failed"}),
        duration_s=video.duration_ms / 1000,
        state=PAUSED if paused else video.state,
    )


@router.get("/videos/{name}", summary="A video")
def video(state: State, name: Name) -> Held:
    """The size of a video's memory; `links` lead to its clips, people and events."""
    video_row, held = video_holdings(state.store, name)
    parts = ("clips", "people", "events")
    return Held(
        **video_row.model_dump(include={"id", "title", "width", "height", "profile"}),
        duration_s=video_row.duration_ms / 1000,
        clips=held.clips,
        memories=held.memories,
        people=held.people,
        events=held.events,
        images=held.images,
        links={part: f"/videos/{video_row.id}/{part}" for part in parts},
    )


@router.get("/videos/{name}/clips", summary="Its clips")
def clips(
    state: State, name: Name, offset: Offset = 0, limit: Limit = DEFAULT_LIMIT, as_of: AsOf = None
) -> Clips:
    """The clips in order, with what was said, read and seen in each, and its keyframes."""
    at_ms, video = as_of_ms(as_of), _find_video(state, name)
    page = load_clips_page(state.store, video, offset, limit, at_ms)
    images = {
        number: [image_path(video.id, f"k{frame.id}") for frame in frames]
        for number, frames in page.frames.items()
    }
    shown = [_clip_body(video.id, clip, images.get(clip.index, [])) for clip in page.clips]
    next_page = next_offset(offset, len(shown), page.total)
    return Clips(total=page.total, offset=offset, next=next_page, clips=shown)


def _clip_body(video: str, clip: ShownClip, images: list[str]) -> ClipTold:
    lines = [
        LineTold(
            ref=f"m{line.id}",
            start_s=line.span.start_ms / 1000,
            end_s=line.span.end_ms / 1000,
            kind=line.kind,
            source=line.source,
            text=tags_in_words(line.text),
        )
        for line in clip.lines
    ]
    return ClipTold(
        number=clip.index,
        start_s=clip.span.start_ms / 1000,
        end_s=clip.span.end_ms / 1000,
        state=clip.state,
        error=clip.error,
        lines=lines,
        images=images,
        keyframes=[
            KeyframeTold(
                ref=frame.ref,
                time_s=frame.time_ms / 1000,
                description=tags_in_words(frame.description),
                image=image_path(video, frame.ref),
            )
            for frame in clip.keyframes
        ],
    )


@router.get("/videos/{name}/events", summary="Its events")
def events(
    state: State, name: Name, offset: Offset = 0, limit: Limit = DEFAULT_LIMIT, as_of: AsOf = None
) -> Happened:
    """Events by time, and the edges between the events of this page."""
    page = load_graph_page(state.store, _find_video(state, name).id, offset, limit, as_of_ms(as_of))
    shown = [
        EventTold(
            ref=f"s{event.id}",
            label=tags_in_words(event.label),
            summary=tags_in_words(event.summary),
            start_s=event.span.start_ms / 1000,
            end_s=event.span.end_ms / 1000,
            clips=list(event.clips),
        )
        for event in page.segments
    ]
    edges = [_edge_body(event) for event in page.links]
    next_page = next_offset(offset, len(shown), page.total)
    return Happened(total=page.total, offset=offset, next=next_page, events=shown, edges=edges)


def _edge_body(shown: ShownEdge) -> Joined:
    edge = shown.edge
    return Joined(
        source=f"s{edge.source}",
        relation=str(edge.relation),
        target=f"s{edge.target}",
        confidence=edge.confidence,
        rationale=tags_in_words(edge.rationale),
    )


@router.delete("/videos/{video}", summary="Delete a video")
def delete(
    state: State, video: Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="Its whole id.")]
) -> Deleted:
    """Delete the memory of a video: rows, vectors, images, and answers that used it.

    It cannot be undone, so it requires the whole id. A file of your own is not touched; a file that
    was uploaded to the app is deleted. `homer audit` records who deleted it.
    """
    with state.store.begin() as session:
        if known_video(session, video) is None:
            raise NotFound(f"no video has the id {video!r}")
    if video in watched_videos(state.store):
        raise Busy("this video is being watched: wait until it is done, or pause it")
    deleted = delete_video(state.store, video)
    title = deleted.video.title
    return Deleted(id=video, title=title, images=deleted.images, uploads=len(deleted.uploads))


def _find_video(state: ApiState, name: str) -> Video:
    with state.store.begin() as session:
        return resolve_video(session, name)
