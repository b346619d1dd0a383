"""What is in memory of a video: its clips with their lines, its events, and questions about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import Field
from sqlalchemy.orm import Session

from domain.base import Frozen
from domain.calls import CallTotals
from domain.media import LEVELS, ClipState, Gap, SeenObject, StreamClip, Video
from domain.memories import Edge, Scope, Segment
from domain.moments import Event, Moment, image_path
from domain.people import TAG, PersonOfVideo, tags_in_words
from domain.time import TimeSpan
from domain.words import format_number, marked, translate
from flows.video_locks import current_state, watched_videos
from library.params import DEFAULT_LIMIT, AsOf, Limit, Offset, Page, VideoName, page
from library.strategies import BuiltOf, built_memories
from people.characters import ClipPeople, people_at
from people.names import display_line, display_segment
from store.database import Store
from store.queries import clips as stored_clips
from store.queries import events as stored_events
from store.queries import keyframes, memories, outline, videos
from store.queries.backup import dump_video
from store.queries.characters import characters_at
from store.queries.clips import KeyframeOnClip, StoredClip
from store.queries.conditions import MAX_ATTEMPTS
from store.queries.encoders import encoders_of_library
from store.queries.trajectories import usage_by_clip
from store.queries.videos import find_video, video_state


class ShownClip(StoredClip):
    """A clip with its memories, line by line, with who said them, and its keyframes.

    ``given_up``: it is retried only on request. ``cost`` is that of its writer's calls; those for a
    patch count for its last clip.
    """

    given_up: bool = False
    cost: CallTotals = CallTotals()
    lines: tuple[Moment, ...]
    objects: tuple[SeenObject, ...] = Field(default=(), description="things on its keyframes")
    keyframes: tuple[Moment, ...] = ()


class StreamDetails(Frozen):
    """A live stream. ``source`` has no secret; ``clips``: how each was watched, by number."""

    source: str
    gaps: tuple[Gap, ...]
    clips: Mapping[int, StreamClip]


class VideoDetails(Frozen):
    """Everything known of a video as of a clip; ``last_clip`` -1: nothing yet.

    ``seconds`` is the time of watching its clips, including the calls that ``cost`` counts.
    """

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
    cost: CallTotals = CallTotals()
    seconds: float = 0.0
    languages: tuple[str, ...] = Field(default=(), description="heard, the most spoken first")
    stream: StreamDetails | None = Field(default=None, description="of a live source only")
    built: tuple[BuiltOf, ...] = Field(default=(), description="by strategies, as it is now")


def show_video(store: Store, video: VideoName, as_of: AsOf = None) -> VideoDetails:
    """Show what is in memory of a video: clips, people, segments and edges.

    Examples:
      homer show talk
      homer show talk --as-of 10:00 --json

    Raises:
        NotFound: there is no such video.
    """
    with store.begin(snapshot=True) as session:
        known = find_video(session, video)
        last = _last_clip(session, known.id, as_of)
        state = video_state(session, known.id)
        assert state is not None  # noqa: S101 - the video was found in this very snapshot
        encoders = encoders_of_library(session)._asdict().items()
        stored = stored_clips.clips_of(session, known.id)
        people = characters_at(session, known.id, last)
        named = ClipPeople(characters=tuple(person.character for person in people))
        shown = tuple(shown_clips(session, known.id, stored, named, last))
        patches = stored_events.patches_of(session, known.id)
        pending = [patch.pending for patch in patches if patch.at_clip <= last]
        details = VideoDetails(
            video=known,
            state=state.state,
            error=state.error,
            models={**state.models, **{port: one for port, one in encoders if one}},
            last_clip=last,
            clips=shown,
            people=tuple(
                PersonOfVideo(
                    video=known.id,
                    title=known.title,
                    number=one.number,
                    label=one.label,
                    names=person.names,
                    tags=tuple(tag for tag in one.tags if not tag.startswith("<character_")),
                )
                for person in people
                for one in (person.character,)
            ),
            segments=tuple(
                display_segment(segment, named)
                for segment in outline.segments_at(session, known.id, last)
            ),
            edges=tuple(outline.edges_at(session, known.id, last)),
            pending=pending[-1] if pending else (),
            cost=sum(usage_by_clip(session, known.id).values(), CallTotals()),
            seconds=sum(clip.seconds for clip in shown),
            languages=tuple(memories.spoken_languages(session, known.id, last)),
            stream=stream_details(session, known.id, as_of),
            built=built_memories(session, known.id),
        )
    # Whether a process watches it is told by locks, which no snapshot has.
    now = current_state(known.id, details.state, watched_videos(store))
    return details.model_copy(update={"state": now})


def shown_clips(
    session: Session,
    video: str,
    stored: Sequence[StoredClip],
    people: ClipPeople,
    last: int,
) -> Iterator[ShownClip]:
    """Yield clips with their memories as of clip ``last``, with the names of ``people``."""
    watched = [clip.index for clip in stored if clip.index <= last]
    lines: dict[int, list[Moment]] = {}
    for row in memories.memories_of_clips(session, video, watched, last):
        one = row.memory
        line = Moment(
            ref=f"m{one.id}",
            span=one.span,
            kind=one.kind,
            source=one.source,
            text=display_line(one, people),
            weight=one.weight,
        )
        lines.setdefault(one.clip, []).append(line)
    objects = stored_clips.objects_on(session, Scope(video=video, last_clip=last), watched)
    frames: dict[int, list[Moment]] = {}
    for frame in keyframes.frames_of(session, video, watched):
        frames.setdefault(frame.clip, []).append(shown_frame(video, frame, people))
    costs = usage_by_clip(session, video)
    for clip in stored:
        failed = clip.state == ClipState.FAILED or clip.unwritten
        yield ShownClip(
            **dict(clip),
            given_up=failed and clip.attempts >= MAX_ATTEMPTS,
            cost=costs.get(clip.index, CallTotals()),
            lines=tuple(lines.get(clip.index, ())),
            objects=tuple(
                seen for seen in objects if clip.span.start_ms <= seen.time_ms < clip.span.end_ms
            ),
            keyframes=tuple(frames.get(clip.index, ())),
        )


def shown_frame(video: str, frame: KeyframeOnClip, people: ClipPeople) -> Moment:
    return Moment(
        ref=f"k{frame.id}",
        span=TimeSpan.of(frame.time_ms, frame.time_ms),
        text=people.display(people.replace_tags(frame.description or "")),
        image=image_path(video, f"k{frame.id}"),
        blob=frame.blob,
    )


def dump_lines(store: Store, video: VideoName) -> Iterator[str]:
    """Print everything learned from a video as canonical JSON lines.

    Two ingestions of the same video give the same bytes, in any database.

    Examples:
      homer dump talk | sha256sum

    Raises:
        NotFound: there is no such video.
    """
    with store.begin(snapshot=True) as session:
        yield from dump_video(session, find_video(session, video).id)


def clips(
    store: Store,
    video: VideoName,
    offset: Offset = 0,
    limit: Limit = DEFAULT_LIMIT,
    as_of: AsOf = None,
) -> Page[ShownClip]:
    """Show the clips of a video in order: what was said, read and seen, and the keyframes.

    As of a moment, only the clips that were watched by then.

    Raises:
        NotFound: there is no such video.
    """
    with store.begin(snapshot=True) as session:
        known = find_video(session, video)
        last = _last_clip(session, known.id, as_of)
        # As it is now, clips that failed or wait are listed too.
        until = None if as_of is None else last
        total = stored_clips.count_clips(session, known.id, until)
        some = stored_clips.clips_page(session, known.id, offset, limit, until)
        people = people_at(session, known.id, last)
        shown = [
            clip.model_copy(
                update={
                    "lines": tuple(one.in_words() for one in clip.lines),
                    "keyframes": tuple(one.in_words() for one in clip.keyframes),
                }
            )
            for clip in shown_clips(session, known.id, some, people, last)
        ]
    return page(shown, total, offset)


def events(
    store: Store,
    video: VideoName,
    offset: Offset = 0,
    limit: Limit = DEFAULT_LIMIT,
    as_of: AsOf = None,
) -> Page[Event]:
    """Show the events of a video by time, with the edges that lead to others of this page.

    Raises:
        NotFound: there is no such video.
    """
    with store.begin(snapshot=True) as session:
        known = find_video(session, video).id
        last = _last_clip(session, known, as_of)
        some = outline.segments_in_time(session, known, last, offset, limit)
        edges = outline.edges_among(session, [segment.id for segment in some], last)
        total = outline.count_segments(session, known, last)
        shown = _events(session, known, last, some, edges)
    return page(shown, total, offset)


def linked_events(store: Store, video: str, segment: int) -> dict[int, Event]:
    """Return an event and those that edges join it with, by id; empty: there is none of that id."""
    with store.begin(snapshot=True) as session:
        last = _last_clip(session, video)
        edges = outline.edges_touching(session, segment, last)
        ends = {end for edge in edges for end in (edge.source, edge.target)} | {segment}
        segments = outline.segments_named(session, video, last, sorted(ends))
        found = {one.number: one for one in _events(session, video, last, segments, edges)}
    return found if segment in found else {}


def _last_clip(session: Session, video: str, as_of_ms: int | None = None) -> int:
    return stored_clips.memory_view(session, [video], as_of_ms).scopes[0].last_clip


def _events(
    session: Session, video: str, last: int, segments: Iterable[Segment], edges: Sequence[Edge]
) -> list[Event]:
    people = people_at(session, video, last)
    return [
        Event(
            ref=f"s{one.id}",
            span=one.span,
            label=tags_in_words(one.label),
            text=tags_in_words(one.summary),
            clips=one.clips,
            edges=tuple(
                edge.model_copy(update={"rationale": tags_in_words(edge.rationale)})
                for edge in edges
                if edge.source == one.id
            ),
        )
        for one in (display_segment(segment, people) for segment in segments)
    ]


def clip_spans(store: Store, video: str, numbers: Sequence[int]) -> list[TimeSpan]:
    """Return the spans of those of the clips that exist, in order."""
    with store.begin() as session:
        spans = stored_events.clip_spans(session, video, numbers)
    return [span for _, span in sorted(spans.items())]


def stream_details(
    session: Session, video: str, until_ms: int | None = None
) -> StreamDetails | None:
    """Return a stream up to a moment of video time (None: all); None for a file."""
    stream = videos.find_stream(session, video)
    if stream is None:
        return None
    clips = {clip.clip: clip for clip in videos.stream_clips(session, video)}
    return StreamDetails(
        source=stream.source, gaps=tuple(videos.gaps_of(session, video, until_ms)), clips=clips
    )


def load_stream_details(store: Store, video: str) -> StreamDetails | None:
    """Return a stream as it is now; None for a file."""
    with store.begin(snapshot=True) as session:
        return stream_details(session, video)


def describe_watching(clip: StreamClip) -> str:
    """Describe how a clip was watched: frames, what was skipped, the lag.

    ``750 frames came, 150 looked at; level 3: every 5th, without objects, screen; lag 12.0 s``
    """
    tally, level = clip.tally, LEVELS[clip.level]
    damaged = (
        translate(", {count} did not decode").format(count=tally.damaged) if tally.damaged else ""
    )
    parts = [
        translate("{came} frames came, {sampled} looked at{damaged}").format(
            came=tally.came, sampled=tally.sampled, damaged=damaged
        )
    ]
    if clip.level:
        without = (
            translate(", without {parts}").format(parts=", ".join(map(translate, level.without)))
            if level.without
            else ""
        )
        parts.append(
            translate("level {level}: {share} of the samples{without}").format(
                level=clip.level, share=format_number(level.share, ".0%"), without=without
            )
        )
    if clip.lag_ms is not None:
        parts.append(
            translate("lag {seconds} s").format(seconds=format_number(clip.lag_ms / 1000, ".1f"))
        )
    return "; ".join(parts)


def describe_gap(gap: Gap) -> str:
    """Return why a gap is not in memory: ``the connection was lost``."""
    frames = translate(" ({count} frames)").format(count=gap.frames) if gap.frames else ""
    return f"{translate(gap.reason)}{frames}"


# Questions about a video, suggested from its own memory.


MAX_SEGMENTS = 20
"""Segments of a video that suggestions are taken from: the first ones."""
MAX_LABEL_CHARS = 60
"""A longer label of a segment reads badly in a question."""
MIN_WORD_CHARS = 4
"""A shorter word of a label says too little of its topic."""
ON_SCREEN = "On screen:"


class SuggestedQuestion(Frozen):
    """A question, and the video that it is about.

    ``text`` is asked as it is, in English, which the local rules and text models are made for.
    """

    video: str
    text: str


def suggested_questions(
    store: Store, videos: Sequence[str], per_video: int = 2
) -> list[SuggestedQuestion]:
    """Return questions that the memory of these videos can answer, ``per_video`` of each at most.

    Raises:
        NotFound: there is no video of that id.
    """
    return [
        SuggestedQuestion(video=video, text=text)
        for video in videos
        for text in list(dict.fromkeys(_questions(store, video)))[:per_video]
    ]


def _questions(store: Store, video: str) -> Iterator[str]:
    """Yield questions about a named person first, then about topics, the longest first."""
    # Names alone: a long video has thousands of times at which its people are seen.
    with store.begin() as session:
        people = people_at(session, video, _last_clip(session, video)).characters
    named = [person.name for person in people if person.name]
    # A person who is called by a tag has no name that one would ask by.
    yield from (marked(f"What does {name} say?") for name in named[:1] if not TAG.search(name))
    segments = events(store, video, limit=MAX_SEGMENTS).items
    for segment in sorted(segments, key=lambda one: -one.span.length_ms):
        yield from _about(segment)


def _about(segment: Event) -> Iterator[str]:
    """Yield a question about a segment: a label with commas is a list of its topic's words."""
    label = segment.label.strip()
    if TAG.search(label) or not label:
        return
    if "," not in label:
        if len(label) <= MAX_LABEL_CHARS:
            yield marked(f"What happens in \u201c{label}\u201d?")
        return
    # Words that were only read on screen may be misread; spoken ones make better questions.
    spoken = " ".join(
        line for line in segment.text.split(". ") if not line.startswith(ON_SCREEN)
    ).casefold()
    words = [word.strip() for word in label.split(",")]
    topics = [word for word in words if len(word) >= MIN_WORD_CHARS and word.casefold() in spoken]
    yield from (marked(f"What is said about {word.lower()}?") for word in topics[:1])
