"""Read models of the library, for commands and the app."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from pydantic import Field
from sqlalchemy.orm import Session

from domain import faults
from domain.base import Frozen
from domain.errors import BlobGone, NotFound
from domain.media import ClipState, SeenObject, Video
from domain.memories import Edge, Memory, Scope, Segment
from domain.moments import Moment, image_path
from domain.people import KnownName, PersonOfVideo
from domain.rights import Deed
from domain.time import TimeSpan
from memory.event_graph import CheckedGraph, GraphFault, GraphFinding, find_faults
from people.characters import ClipPeople
from people.names import display_line
from people.overlay import characters_at
from store.database import Store, remove_orphaned_blobs, remove_unused_blobs
from store.progress import Megabytes, Progress
from store.queries import (
    blobs,
    calls,
    characters,
    clip_contents,
    clips,
    events,
    keyframes,
    library,
    memories,
    videos,
)
from store.queries import (
    memories as texts,
)
from store.queries.audit import record_deed
from store.queries.clips import StoredClip
from store.queries.conditions import MAX_ATTEMPTS
from store.queries.events import PatchAt
from store.queries.keyframes import StoredKeyframe
from store.queries.library import LibraryEntry
from store.recap_files import remove_recap_files
from views.built import BuiltOf, built_memories
from views.streams import StreamDetails, stream_details

__all__ = [
    "VideoCheck",
    "VideoDetails",
    "all_titles",
    "check_video",
    "delete_video_rows",
    "list_library",
    "resolve_video",
    "show_video",
    "videos_named",
]


class ClipCost(Frozen):
    """The cost of writing: model calls, failed calls, tokens, US dollars where prices are known.

    ``seconds`` of a clip is the time of watching it, including the calls; 0 if it is not known.
    """

    calls: int = 0
    failed: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: ClipCost) -> ClipCost:
        """Return the sum of both."""
        ours, theirs = self.model_dump(), other.model_dump()
        return ClipCost(**{name: ours[name] + theirs[name] for name in ours})


class ShownClip(StoredClip):
    """A clip with its memories, line by line, with who said them, and its keyframes.

    ``given_up``: it is retried only on request.
    """

    given_up: bool = False
    cost: ClipCost = ClipCost()
    lines: tuple[Moment, ...]
    objects: tuple[SeenObject, ...] = Field(default=(), description="things on its keyframes")
    keyframes: tuple[Moment, ...] = ()


class VideoDetails(Frozen):
    """Everything known of a video as of a clip; ``last_clip`` -1: nothing yet."""

    video: Video
    state: str
    error: str | None
    models: Mapping[str, str]
    last_clip: int
    clips: tuple[ShownClip, ...]
    people: tuple[PersonOfVideo, ...]
    segments: tuple[Segment, ...]
    edges: tuple[Edge, ...]
    pending: tuple[int, ...] = Field(default=(), description="clips that no segment covers yet")
    cost: ClipCost = ClipCost()
    languages: tuple[str, ...] = Field(default=(), description="heard, the most spoken first")
    stream: StreamDetails | None = Field(default=None, description="of a live source only")
    built: tuple[BuiltOf, ...] = Field(default=(), description="by strategies, as it is now")


class VideoCheck(Frozen):
    """The result of checking a video; ``clips``, ``segments``, ``edges``, ``images`` are counts."""

    video: str
    title: str
    clips: int
    segments: int
    edges: int
    images: int
    findings: tuple[GraphFinding, ...]

    @property
    def exit_code(self) -> int:
        """The exit code of a command that finds this."""
        return 1 if self.findings else 0


def list_library(store: Store) -> list[LibraryEntry]:
    """Return all videos, by title, then id."""
    with store.begin(snapshot=True) as session:
        return library.videos_page(session)


def resolve_video(session: Session, name: str) -> Video:
    """Return the video of that id, title, or unambiguous beginning of one.

    Raises:
        NotFound: there is no video of that name.
        Ambiguous: there are several; the message lists them.
    """
    return videos.find_video(session, name)


def all_titles(store: Store) -> dict[str, str]:
    """Return the title of every video by its id, by title, then id."""
    with store.begin() as session:
        return videos.video_titles(session)


def newest_titles(store: Store, limit: int) -> dict[str, str]:
    """Return the titles of the videos that were added last by id, the newest first."""
    with store.begin() as session:
        return videos.newest_titles(session, limit)


def videos_named(store: Store, ids: Sequence[str]) -> dict[str, Video]:
    """Return those of the videos that are in the library, by id, in the given order."""
    with store.begin() as session:
        found = videos.find_videos(session, ids)
    return {video: found[video] for video in dict.fromkeys(ids) if video in found}


def show_video(store: Store, name: str, as_of_ms: int | None = None) -> VideoDetails:
    """Return everything known of a video at a moment of video time (None: now).

    Raises:
        NotFound: there is no video of that name.
        Ambiguous: there are several.
    """
    with store.begin(snapshot=True) as session:
        video = resolve_video(session, name)
        view = clips.memory_view(session, [video.id], as_of_ms)
        return _portrait(session, video, view.scopes[0].last_clip, as_of_ms)


def _portrait(session: Session, video: Video, last: int, as_of_ms: int | None) -> VideoDetails:
    state = videos.video_state(session, video.id)
    assert state is not None  # noqa: S101 - the video was found in this very snapshot
    stored = clips.clips_of(session, video.id)
    spans = {clip.index: clip.span for clip in stored}
    people = characters_at(session, video.id, last)
    named = ClipPeople(characters=tuple(person.character for person in people))
    segments = events.segments_at(session, video.id, last)
    shown = tuple(shown_clips(session, video.id, stored, people, last))
    return VideoDetails(
        video=video,
        state=state.state,
        error=state.error,
        models=state.models,
        last_clip=last,
        clips=shown,
        people=tuple(_person(video, person) for person in people),
        segments=tuple(
            shown_segment(events.as_segment(video.id, row, spans), named) for row in segments
        ),
        edges=tuple(events.as_edge(row) for row in events.edges_at(session, video.id, last)),
        pending=_pending(_patches(session, video.id, last)),
        cost=sum((clip.cost for clip in shown), _cost_of_no_clip(session, video.id)),
        languages=tuple(texts.spoken_languages(session, video.id, last)),
        stream=stream_details(session, video.id, as_of_ms),
        built=built_memories(session, video.id),
    )


_USAGE = ("calls", "failed", "tokens_in", "tokens_out", "cost_usd")


def _costs(session: Session, video_id: str, stored: Sequence[StoredClip]) -> dict[int, ClipCost]:
    """Return the cost of each clip; the calls for a patch count for its last clip."""
    usages = {usage.clip: asdict(usage) for usage in calls.usage_by_clip(session, video_id)}
    return {
        clip.index: ClipCost(
            seconds=clip.seconds,
            **{field: usages[clip.index][field] for field in _USAGE if clip.index in usages},
        )
        for clip in stored
    }


def _cost_of_no_clip(session: Session, video_id: str) -> ClipCost:
    """Return the cost of calls for no single clip: vectors of captions, and new vectors."""
    usages = calls.usage_by_clip(session, video_id)
    ours = (asdict(usage) for usage in usages if usage.clip is None)
    return sum((ClipCost(**{name: one[name] for name in _USAGE}) for one in ours), ClipCost())


def shown_clips(
    session: Session,
    video_id: str,
    stored: Sequence[StoredClip],
    people: Sequence[characters.CharacterAt],
    last: int,
) -> Iterator[ShownClip]:
    """Yield clips with their memories as of clip ``last``, with the names of ``people``."""
    named = ClipPeople(characters=tuple(person.character for person in people))
    watched = [clip.index for clip in stored if clip.index <= last]
    rows = memories.memories_of_clips(session, video_id, watched, last)
    lines: dict[int, list[Moment]] = {}
    for row in rows:
        lines.setdefault(row.memory.clip, []).append(_line(row.memory, named))
    objects = clip_contents.objects_on(session, Scope(video=video_id, last_clip=last), watched)
    frames: dict[int, list[Moment]] = {}
    for frame in keyframes.frames_of(session, video_id, watched):
        frames.setdefault(frame.clip, []).append(_keyframe(video_id, frame, named))
    costs = _costs(session, video_id, stored)
    for clip in stored:
        yield ShownClip(
            **dict(clip),
            given_up=(clip.state == ClipState.FAILED or clip.unwritten)
            and clip.attempts >= MAX_ATTEMPTS,
            cost=costs[clip.index],
            lines=tuple(lines.get(clip.index, ())),
            objects=tuple(
                seen for seen in objects if clip.span.start_ms <= seen.time_ms < clip.span.end_ms
            ),
            keyframes=tuple(frames.get(clip.index, ())),
        )


def _keyframe(video: str, frame: StoredKeyframe, people: ClipPeople) -> Moment:
    return Moment(
        ref=f"k{frame.id}",
        span=TimeSpan.of(frame.time_ms, frame.time_ms),
        text=people.display(people.replace_tags(frame.description or "")),
        image=image_path(video, f"k{frame.id}"),
        blob=frame.blob,
    )


def shown_segment(segment: Segment, people: ClipPeople) -> Segment:
    """Return the segment with names in place of tags, and of replaced names, where known."""
    texts = {
        "label": people.update_names(segment.label),
        "summary": people.update_names(segment.summary),
    }
    return segment.model_copy(update=texts)


def _line(memory: Memory, people: ClipPeople) -> Moment:
    return Moment(
        ref=f"m{memory.id}",
        span=memory.span,
        kind=memory.kind,
        source=memory.source,
        text=display_line(memory, people),
        weight=memory.weight,
    )


def _person(video: Video, row: characters.CharacterAt) -> PersonOfVideo:
    """Return a character with its tags and names."""
    one = row.character
    return PersonOfVideo(
        video=video.id,
        title=video.title,
        number=one.number,
        label=one.label,
        names=tuple(
            KnownName(name=name.text, source=name.source, from_clip=name.from_clip)
            for name in row.names
        ),
        tags=tuple(tag for tag in one.tags if not tag.startswith("<character_")),
    )


def _patches(session: Session, video_id: str, last: int) -> list[PatchAt]:
    return [patch for patch in events.patches_of(session, video_id) if patch.at_clip <= last]


def _pending(patches: Sequence[PatchAt]) -> tuple[int, ...]:
    return patches[-1].pending if patches else ()


def check_video(
    store: Store, name: str, as_of_ms: int | None = None, progress: Progress | None = None
) -> VideoCheck:
    """Check the whole event graph of a video at a moment of video time (None: now).

    All its images are also compared with their digests, including those of later moments.

    Raises:
        NotFound: there is no video of that name.
        Ambiguous: there are several.
    """
    with store.begin(snapshot=True) as session:
        video = resolve_video(session, name)
        view = clips.memory_view(session, [video.id], as_of_ms)
        graph = _graph_to_check(session, video.id, view.scopes[0].last_clip)
        images = blobs.blobs_of(session, video.id)
    image_findings = list(_bad_images(store, video.id, images, progress))
    return VideoCheck(
        video=video.id,
        title=video.title,
        clips=len(graph.stored),
        segments=len(graph.segments),
        edges=len(graph.edges),
        images=len(images),
        findings=(*find_faults(graph), *image_findings),
    )


def _bad_images(
    store: Store, video_id: str, images: Mapping[str, int], progress: Progress | None
) -> Iterator[GraphFinding]:
    """Yield findings for missing or damaged images, except for those deleted meanwhile."""
    megabytes = Megabytes(progress, "images, MB", sum(images.values())) if progress else None
    bad: dict[str, GraphFault] = {}
    for sha, size in images.items():
        try:
            store.blobs.get(sha)
        except BlobGone:
            bad[sha] = GraphFault.DAMAGED if store.blobs.exists(sha) else GraphFault.MISSING
        if megabytes:
            megabytes.step(size)
    with store.begin() as session:
        present = blobs.blobs_of(session, video_id) if bad else {}
    for sha in sorted(bad.keys() & present.keys()):
        text = f"a stored image is {bad[sha]}: restore it from a back-up, or watch the video again"
        yield GraphFinding(fault=bad[sha], text=text, refs=(sha,))


def _graph_to_check(session: Session, video_id: str, last: int) -> CheckedGraph:
    stored = clips.clips_of(session, video_id)
    spans = {clip.index: clip.span for clip in stored}
    patches = _patches(session, video_id, last)
    covered = {clip for patch in patches for clip in range(patch.first_clip, patch.at_clip + 1)}
    segments = events.segments_at(session, video_id, last)
    return CheckedGraph(
        stored=frozenset(
            clip.index for clip in stored if clip.state == ClipState.DONE and clip.index <= last
        ),
        due=frozenset(covered),
        pending=frozenset(_pending(patches)),
        segments=tuple(events.as_segment(video_id, row, spans) for row in segments),
        edges=tuple(events.as_edge(row) for row in events.edges_at(session, video_id, last)),
    )


def delete_video_rows(store: Store, name: str) -> int:
    """Delete every row, blob, checkpoint and trajectory of a video; return how many files.

    Files that a killed ingestion left without a row are deleted too.

    Raises:
        NotFound: there is no video of that name.
        Ambiguous: there are several.
    """
    try:
        with store.begin() as session:
            video = resolve_video(session, name).id
            unused = videos.delete_video(session, video)
            record_deed(session, Deed.DELETED, video)
            faults.fault_point(faults.FaultPoint.DELETED_ROWS)
    except NotFound:
        remove_orphaned_blobs(store)  # of a deletion that was killed
        raise
    faults.fault_point(faults.FaultPoint.DELETED)
    remove_recap_files(store.home, video)
    return remove_unused_blobs(store, unused) + remove_orphaned_blobs(store)
