"""Links to one answer or moment for somebody without an account, and what such a link shows.

Making and revoking one is on the audit log.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from auth.signing_in import is_signed, link_key, sign_until
from domain.asking import Answer, Citation, Question
from domain.base import Frozen
from domain.errors import InputError, NotFound
from domain.moments import Moment
from domain.rights import DEFAULT_DAYS, MAX_DAYS, MAX_MOMENT_MS, MIN_DAYS, Deed, SharedLink
from domain.time import TimeSpan, format_clock
from domain.words import translate
from library.memory import shown_clips
from library.moments import frame_at
from library.params import Span, VideoName
from library.videos import videos_named
from people.characters import people_at
from services.supervisor import app_address
from store.database import Store
from store.queries import rights as queries
from store.queries.clips import clip_at, clips_of, memory_view
from store.queries.rights import record_deed
from store.queries.trajectories import find_trajectory
from store.queries.videos import find_video, known_video

Days = Annotated[int, Field(ge=MIN_DAYS, le=MAX_DAYS, description="For how many days it is valid.")]


def share_answer(
    store: Store,
    id: Annotated[str, Field(description="The answer's id: homer trajectory lists them.")],  # noqa: A002 - what users type
    days: Days = DEFAULT_DAYS,
) -> SharedLink:
    """Make a link to an answer with the moments that it cites.

    Examples:
      homer share answer 3f2a --days 30

    Raises:
        NotFound: there is no such trajectory.
        InputError: it has no answer.
    """
    with store.begin() as session:
        row = find_trajectory(session, id)
        if row.answer is None:
            raise InputError(f"{row.id} has no answer to share")
        link = queries.add_link(session, days, trajectory=row.id)
        record_deed(session, Deed.SHARED, link.subject)
    return _with_url(store, link)


def share_moment(
    store: Store, video: VideoName, time: Span, days: Days = DEFAULT_DAYS
) -> SharedLink:
    """Make a link to a moment: its image, and what was said and read then.

    Examples:
      homer share moment talk 12:30-12:45

    Raises:
        NotFound: there is no such video.
        InputError: nothing was watched then, or it is too long.
    """
    if time.length_ms > MAX_MOMENT_MS:
        raise InputError(f"a moment is at most {MAX_MOMENT_MS // 60_000} minutes long")
    with store.begin() as session:
        found = find_video(session, video)
        if clip_at(session, found.id, time.start_ms) is None:
            raise InputError(f"{found.title} was not watched at {format_clock(time.start_ms)}")
        link = queries.add_link(session, days, video=found.id, span=time)
        record_deed(session, Deed.SHARED, link.subject)
    return _with_url(store, link)


def shared_links(
    store: Store,
    answer: Annotated[str | None, Field(description="Only those to this answer.")] = None,
) -> list[SharedLink]:
    """List the links that are valid, the latest first.

    Examples:
      homer share list --json
    """
    with store.begin() as session:
        links = queries.list_links(session, answer)
    return [_with_url(store, link) for link in links]


def _with_url(store: Store, link: SharedLink) -> SharedLink:
    path = sign_until(link.path, link.until, link_key(store.home))
    return link.model_copy(update={"url": app_address(store.home) + path})


def revoke_link(
    store: Store,
    link: Annotated[str, Field(description="Its id: homer share list has them.")],
) -> str:
    """End a link: whoever opens it from then on sees nothing.

    Examples:
      homer share revoke 9c0d5e7a1b2f4a68

    Raises:
        NotFound: there is no such link.
    """
    with store.begin() as session:
        found = queries.find_link(session, link)
        queries.remove_link(session, found.id)
        record_deed(session, Deed.REVOKED_LINK, found.subject)
    return f"{link} is revoked"


def open_link(store: Store, name: str, until: str, key: str) -> SharedLink:
    """Return a link that somebody opens, once its signature is checked.

    Raises:
        NotFound: the signature is wrong, or the link has expired or was revoked.
    """
    # Checked first: without the key nobody finds out which links there are.
    if not is_signed(f"/shared/{name}", until, key, secret=link_key(store.home)):
        raise NotFound("the signature is wrong")
    with store.begin() as session:
        link = queries.find_link(session, name)
        if link.until != int(until):
            raise NotFound("it was signed for another time")
        record_deed(session, Deed.OPENED_LINK, link.subject)
    return link


# What a shared link shows: one answer with its citations, or one moment. Nothing else.


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
    # A question as of a moment is shown no later frame.
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
