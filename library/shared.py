"""What a shared link shows: one answer with its citations, or one moment. Nothing else."""

from __future__ import annotations

from domain.asking import Answer, Citation, Question
from domain.base import Frozen
from domain.errors import NotFound
from domain.moments import Moment
from domain.rights import SharedLink
from domain.time import TimeSpan
from domain.words import translate
from library.memory import shown_clips
from library.moments import frame_at
from library.videos import videos_named
from people.characters import people_at
from store.database import Store
from store.queries.clips import clips_of, memory_view
from store.queries.trajectories import find_trajectory
from store.queries.videos import known_video


class CitedMoment(Frozen):
    """A citation with the title of its video and the image that shows it."""

    citation: Citation
    title: str
    frame: Moment | None


class SharedAnswer(Frozen):
    """A question, its answer, and what the answer cites."""

    question: Question
    answer: Answer
    citations: tuple[CitedMoment, ...]


class SharedMoment(Frozen):
    """A moment of a video with its lines, and the image nearest to its start."""

    title: str
    span: TimeSpan
    lines: tuple[str, ...]
    frame: Moment | None


def load_shared(store: Store, link: SharedLink) -> SharedAnswer | SharedMoment:
    """Return what a link shows, as it is now.

    Raises:
        NotFound: it was deleted just now.
    """
    if link.video is not None and link.span is not None:
        video = link.video
        span = link.span
        with store.begin(snapshot=True) as session:
            known = known_video(session, video)
            if known is None:
                raise NotFound(translate("video {video} was deleted").format(video=video))
            last = memory_view(session, [video]).scopes[0].last_clip
            stored = [one for one in clips_of(session, video) if _overlap(one.span, span)]
            people = people_at(session, video, last)
            clips = list(shown_clips(session, video, stored, people, last))
        lines = tuple(one.text for clip in clips for one in clip.lines if _overlap(one.span, span))
        frame = frame_at(store, video, span.start_ms)
        return SharedMoment(title=known.title, span=span, lines=lines, frame=frame)
    trajectory = link.trajectory or ""
    with store.begin() as session:
        row = find_trajectory(session, trajectory)
    if row.answer is None:
        raise NotFound(
            translate("{trajectory} has no answer any more").format(trajectory=trajectory)
        )
    titles = videos_named(store, [one.video for one in row.answer.citations])
    as_of_ms = row.question.as_of_ms
    cited = (
        CitedMoment(
            citation=one,
            title=titles[one.video].title if one.video in titles else translate("a deleted video"),
            frame=frame_at(store, one.video, one.span.start_ms, one.ref, as_of_ms),
        )
        for one in row.answer.citations
    )
    return SharedAnswer(question=row.question, answer=row.answer, citations=tuple(cited))


def _overlap(one: TimeSpan, other: TimeSpan) -> bool:
    """Check whether two spans share an instant; a span without length is an instant itself."""
    return one.start_ms < max(other.end_ms, other.start_ms + 1) and other.start_ms < max(
        one.end_ms, one.start_ms + 1
    )
