"""What is in the library, as the command line and the app show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from pydantic import Field
from sqlalchemy.orm import Session

from domain import faults
from domain.audit import Deed
from domain.base import Frozen
from domain.errors import BlobGone, NotFound
from domain.events import Edge, Segment
from domain.media import ClipState, SeenObject, Video
from domain.memories import Memory
from domain.time import TimeSpan
from domain.view import Scope
from memory.graph_check import CheckedGraph, GraphFault, GraphFinding, findings
from people.clip_people import ClipPeople
from people.corrected import characters_at
from people.memory_lines import shown
from store.database import Store
from store.progress import Megabytes, Progress
from store.queries import (
    blobs,
    calls,
    characters,
    clips,
    events,
    library_pages,
    memories,
    on_clips,
    texts,
    videos,
)
from store.queries.audit import note
from store.queries.clips import StoredClip
from store.queries.dump import dump
from store.queries.events import PatchAt
from store.sweep import drop_blobs, sweep_blobs
from views.streams import StreamTold, stream_told

__all__ = [
    "Checked",
    "LibraryEntry",
    "Portrait",
    "all_titles",
    "check_video",
    "delete",
    "dump_lines",
    "export",
    "list_library",
    "resolve",
    "show_video",
    "videos_named",
]


class LibraryEntry(Frozen):
    """A video in the list. ``clips``, ``done`` and ``failed`` are counts."""

    id: str
    title: str
    path: str | None
    duration_ms: int
    state: str
    error: str | None
    profile: str
    clips: int
    done: int
    failed: int


class ShownLine(Frozen):
    """A memory as a person reads it: names in place of tags where they are known."""

    id: int
    span: TimeSpan
    kind: str
    source: str
    text: str
    weight: int


class Cost(Frozen):
    """What writing took: model calls, those that failed, tokens, US dollars where prices are known.

    ``seconds`` of a clip are those of watching it, the calls among them; 0 where none are known.
    """

    calls: int = 0
    failed: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        """Both together."""
        ours, theirs = self.model_dump(), other.model_dump()
        return Cost(**{name: ours[name] + theirs[name] for name in ours})


class ShownClip(Frozen):
    """A clip with what is remembered of it, line by line, with who said it.

    ``attempts`` counts how often it failed; ``given_up``: it is tried again only when asked for.
    ``budget``: tokens a language model might take for it; ``left_out``: what it was not shown.
    """

    index: int
    span: TimeSpan
    state: str
    error: str | None
    attempts: int = 0
    given_up: bool = False
    cost: Cost = Cost()
    budget: int | None = None
    left_out: tuple[str, ...] = ()
    lines: tuple[ShownLine, ...]
    objects: tuple[SeenObject, ...] = Field(default=(), description="things on its keyframes")


class ShownName(Frozen):
    """A name and where it comes from: said, read, caption, model or person."""

    name: str
    source: str
    from_clip: int


class ShownPerson(Frozen):
    """A character: its number, the tags it is recognised by, and its names."""

    number: int
    label: str
    tags: tuple[str, ...]
    names: tuple[ShownName, ...]
    from_clip: int


class Portrait(Frozen):
    """All that is known of a video as of a clip; ``last_clip`` -1 is nothing yet."""

    video: Video
    state: str
    error: str | None
    models: Mapping[str, str]
    last_clip: int
    clips: tuple[ShownClip, ...]
    people: tuple[ShownPerson, ...]
    segments: tuple[Segment, ...]
    edges: tuple[Edge, ...]
    pending: tuple[int, ...] = Field(default=(), description="clips that no segment covers yet")
    cost: Cost = Cost()
    languages: tuple[str, ...] = Field(default=(), description="heard, the most spoken first")
    stream: StreamTold | None = Field(default=None, description="of a live source only")


class Checked(Frozen):
    """What checking a video found; ``clips``, ``segments``, ``edges``, ``images`` are counts."""

    video: str
    title: str
    clips: int
    segments: int
    edges: int
    images: int
    findings: tuple[GraphFinding, ...]


def list_library(store: Store) -> list[LibraryEntry]:
    """All videos, by title, then id."""
    with store.begin(snapshot=True) as session:
        found = library_pages.shelf_page(session)
    return [LibraryEntry.model_validate(one, from_attributes=True) for one in found]


def resolve(session: Session, name: str) -> Video:
    """The video of that id, title, or unambiguous beginning of one.

    Raises:
        NotFound: none goes by that name.
        Ambiguous: several do; the message names them.
    """
    return videos.find_video(session, name)


def all_titles(store: Store) -> dict[str, str]:
    """The title of every video by its id, by title, then id."""
    with store.begin() as session:
        return videos.titles(session)


def videos_named(store: Store, ids: Sequence[str]) -> dict[str, Video]:
    """Those of these videos that are in the library, by id, in that order."""
    with store.begin() as session:
        found = videos.videos_of(session, ids)
    return {name: found[name] for name in dict.fromkeys(ids) if name in found}


def show_video(store: Store, name: str, as_of_ms: int | None = None) -> Portrait:
    """Everything known of a video, as it was at a moment of video time (None: now).

    Raises:
        NotFound: none goes by that name.
        Ambiguous: several do.
    """
    with store.begin(snapshot=True) as session:
        video = resolve(session, name)
        view = clips.view_of(session, [video.id], as_of_ms)
        return _portrait(session, video, view.scopes[0].last_clip, as_of_ms)


def _portrait(session: Session, video: Video, last: int, as_of_ms: int | None) -> Portrait:
    state = videos.video_state(session, video.id)
    assert state is not None  # noqa: S101 - the video was found in this very snapshot
    stored = clips.clips_of(session, video.id)
    spans = {clip.index: clip.span for clip in stored}
    people = characters_at(session, video.id, last)
    named = ClipPeople(characters=tuple(one.character for one in people))
    segments = events.segments_at(session, video.id, last)
    shown = tuple(shown_clips(session, video.id, stored, people, last))
    return Portrait(
        video=video,
        state=state.state,
        error=state.error,
        models=state.models,
        last_clip=last,
        clips=shown,
        people=tuple(shown_person(one) for one in people),
        segments=tuple(
            shown_segment(events.as_segment(video.id, one, spans), named) for one in segments
        ),
        edges=tuple(events.as_edge(one) for one in events.edges_at(session, video.id, last)),
        pending=_pending(_patches(session, video.id, last)),
        cost=sum((one.cost for one in shown), Cost()),
        languages=tuple(texts.languages_heard(session, video.id, last)),
        stream=stream_told(session, video.id, as_of_ms),
    )


def _costs(session: Session, video_id: str, stored: Sequence[StoredClip]) -> dict[int, Cost]:
    """What each clip took; the calls for a patch count for its last clip."""
    used = {one.clip: asdict(one) for one in calls.usage_by_clip(session, video_id)}
    kept = ("calls", "failed", "tokens_in", "tokens_out", "cost_usd")
    return {
        clip.index: Cost(
            seconds=clip.seconds,
            **{name: used[clip.index][name] for name in kept if clip.index in used},
        )
        for clip in stored
    }


def shown_clips(
    session: Session,
    video_id: str,
    stored: Sequence[StoredClip],
    people: Sequence[characters.CharacterAt],
    last: int,
) -> Iterator[ShownClip]:
    """Clips with what is remembered of them as of clip ``last``, in the words of ``people``."""
    named = ClipPeople(characters=tuple(one.character for one in people))
    every = [clip.index for clip in stored if clip.index <= last]
    found = memories.memories_of_clips(session, video_id, every, last)
    lines: dict[int, list[ShownLine]] = {}
    for one in found:
        lines.setdefault(one.memory.clip, []).append(_line(one.memory, named))
    things = on_clips.objects_on(session, Scope(video=video_id, last_clip=last), every)
    costs = _costs(session, video_id, stored)
    for clip in stored:
        yield ShownClip(
            index=clip.index,
            span=clip.span,
            state=clip.state,
            error=clip.error,
            attempts=clip.attempts,
            given_up=clip.state == ClipState.FAILED and clip.attempts >= clips.ATTEMPTS,
            cost=costs[clip.index],
            budget=clip.budget,
            left_out=clip.left_out,
            lines=tuple(lines.get(clip.index, ())),
            objects=tuple(one for one in things if _within(clip.span, one.time_ms)),
        )


def _within(span: TimeSpan, time_ms: int) -> bool:
    return span.start_ms <= time_ms < span.end_ms


def shown_segment(found: Segment, people: ClipPeople) -> Segment:
    """The segment with names in place of tags where they are known, and of replaced names."""
    told = {"label": people.retold(found.label), "summary": people.retold(found.summary)}
    return found.model_copy(update=told)


def _line(memory: Memory, people: ClipPeople) -> ShownLine:
    return ShownLine(
        id=memory.id,
        span=memory.span,
        kind=memory.kind,
        source=memory.source,
        text=shown(memory, people),
        weight=memory.weight,
    )


def shown_person(found: characters.CharacterAt) -> ShownPerson:
    """A character with its tags and names."""
    one = found.character
    tags = [f"<face_{n}>" for n in one.faces] + [f"<voice_{n}>" for n in one.voices]
    return ShownPerson(
        number=one.number,
        label=one.label,
        tags=tuple(tags),
        names=tuple(
            ShownName(name=name.text, source=name.source, from_clip=name.from_clip)
            for name in found.names
        ),
        from_clip=found.from_clip,
    )


def _patches(session: Session, video_id: str, last: int) -> list[PatchAt]:
    return [one for one in events.patches_of(session, video_id) if one.at_clip <= last]


def _pending(patches: Sequence[PatchAt]) -> tuple[int, ...]:
    return patches[-1].pending if patches else ()


def check_video(
    store: Store, name: str, as_of_ms: int | None = None, progress: Progress | None = None
) -> Checked:
    """Check the whole event graph of a video, as it was at a moment of video time (None: now).

    All its images are read against their digests too, those of later moments among them.

    Raises:
        NotFound: none goes by that name.
        Ambiguous: several do.
    """
    with store.begin(snapshot=True) as session:
        video = resolve(session, name)
        view = clips.view_of(session, [video.id], as_of_ms)
        whole = _whole(session, video.id, view.scopes[0].last_clip)
        images = blobs.blobs_of(session, video.id)
    bad = list(_bad_images(store, video.id, images, progress))
    return Checked(
        video=video.id,
        title=video.title,
        clips=len(whole.done),
        segments=len(whole.segments),
        edges=len(whole.edges),
        images=len(images),
        findings=(*findings(whole), *bad),
    )


def _bad_images(
    store: Store, video_id: str, images: Mapping[str, int], progress: Progress | None
) -> Iterator[GraphFinding]:
    """Images that are missing or damaged; those that were deleted meanwhile are neither."""
    told = Megabytes(progress, "images, MB", sum(images.values())) if progress else None
    bad: dict[str, GraphFault] = {}
    for sha, size in images.items():
        try:
            store.blobs.get(sha)
        except BlobGone:
            bad[sha] = GraphFault.DAMAGED if store.blobs.exists(sha) else GraphFault.MISSING
        if told:
            told.step(size)
    with store.begin() as session:
        still = blobs.blobs_of(session, video_id) if bad else {}
    for sha in sorted(bad.keys() & still.keys()):
        text = f"a stored image is {bad[sha]}: restore it from a back-up, or watch the video anew"
        yield GraphFinding(fault=bad[sha], text=text, refs=(sha,))


def _whole(session: Session, video_id: str, last: int) -> CheckedGraph:
    stored = clips.clips_of(session, video_id)
    spans = {clip.index: clip.span for clip in stored}
    patches = _patches(session, video_id, last)
    woven = {clip for one in patches for clip in range(one.first_clip, one.at_clip + 1)}
    segments = events.segments_at(session, video_id, last)
    return CheckedGraph(
        done=frozenset(c.index for c in stored if c.state == ClipState.DONE and c.index <= last),
        woven=frozenset(woven),
        pending=frozenset(_pending(patches)),
        segments=tuple(events.as_segment(video_id, one, spans) for one in segments),
        edges=tuple(events.as_edge(one) for one in events.edges_at(session, video_id, last)),
    )


def delete(store: Store, name: str) -> int:
    """Delete every row, blob, checkpoint and trajectory of a video; returns the files removed.

    Files that a killed ingestion left without a row go on this occasion too.

    Raises:
        NotFound: none goes by that name.
        Ambiguous: several do.
    """
    try:
        with store.begin() as session:
            video = resolve(session, name).id
            unused = videos.delete_video(session, video)
            note(session, Deed.DELETED, video)
            faults.fault_point(faults.FaultPoint.DELETED_ROWS)
    except NotFound:
        sweep_blobs(store)  # of a deletion that was killed
        raise
    faults.fault_point(faults.FaultPoint.DELETED)
    return drop_blobs(store, unused) + sweep_blobs(store)


def dump_lines(store: Store, name: str) -> Iterator[str]:
    """Canonical JSON lines of a video; equal bytes for two watchings of one video.

    Raises:
        NotFound: none goes by that name.
        Ambiguous: several do.
    """
    with store.begin(snapshot=True) as session:
        yield from dump(session, resolve(session, name).id)


def export(store: Store, name: str, out: Path) -> None:
    """Write everything about a video, blobs included, into one zip file.

    Raises:
        NotFound: none goes by that name.
        Ambiguous: several do.
    """
    from store.export import export_video

    with store.begin(snapshot=True) as session:
        video = resolve(session, name)
    export_video(store, video.id, out)
    with store.begin() as session:
        note(session, Deed.EXPORTED, video.id)
