"""Sharing one answer or moment by a link, opening it, and revoking it; each is on the audit log."""

from __future__ import annotations

from sqlalchemy.orm import Session

from auth.signed_links import is_signed, link_key, sign_until
from domain.audit import Deed
from domain.errors import InputError, NotFound
from domain.links import MAX_DAYS, MAX_MOMENT_MS, MIN_DAYS, SharedLink
from domain.time import TimeSpan, format_clock
from store.database import Store
from store.queries.audit import record_deed
from store.queries.clips import clip_at
from store.queries.shared_links import add_link, find_link, remove_link
from store.queries.trajectories import find_trajectory
from store.queries.videos import find_video


def share_answer(store: Store, name: str, days: int) -> SharedLink:
    """Make a link to an answer.

    Args:
        name: the trajectory's id, or an unambiguous beginning of it.
        days: how long it is valid.

    Raises:
        NotFound: there is no such trajectory.
        InputError: it has no answer, or the days are too few or too many.
    """
    _check_days(days)
    with store.begin() as session:
        row = find_trajectory(session, name)
        if row.answer is None:
            raise InputError(f"{row.id} has no answer to share")
        return _recorded(session, add_link(session, days, trajectory=row.id))


def share_moment(store: Store, name: str, span: TimeSpan, days: int) -> SharedLink:
    """Make a link to a moment of a video.

    Args:
        name: the video's id, title, or an unambiguous beginning of one.
        span: the moment, at most ``MAX_MOMENT_MS`` long.
        days: how long it is valid.

    Raises:
        NotFound: there is no such video.
        InputError: nothing was watched then, it is too long, or the days are too few or too many.
    """
    _check_days(days)
    if span.length_ms > MAX_MOMENT_MS:
        raise InputError(f"a moment is at most {MAX_MOMENT_MS // 60_000} minutes long")
    with store.begin() as session:
        video = find_video(session, name)
        if clip_at(session, video.id, span.start_ms) is None:
            raise InputError(f"{video.title} was not watched at {format_clock(span.start_ms)}")
        return _recorded(session, add_link(session, days, video=video.id, span=span))


def _check_days(days: int) -> None:
    if not MIN_DAYS <= days <= MAX_DAYS:
        raise InputError(f"a link is valid for {MIN_DAYS} to {MAX_DAYS} days, not {days}")


def _recorded(session: Session, link: SharedLink) -> SharedLink:
    record_deed(session, Deed.SHARED, link.subject)
    return link


def signed_path(store: Store, link: SharedLink) -> str:
    """Return the path and the signature of a link, which follow the app's address."""
    return sign_until(link.path, link.until, link_key(store.home))


def open_link(store: Store, name: str, until: str, key: str) -> SharedLink:
    """Return a link that somebody opens, once its signature is checked.

    Raises:
        NotFound: the signature is wrong, or the link has expired or was revoked.
    """
    if not is_signed(f"/shared/{name}", until, key, secret=link_key(store.home)):
        raise NotFound("the signature is wrong")
    with store.begin() as session:
        link = find_link(session, name)
        if link.until != int(until):
            raise NotFound("it was signed for another time")
        record_deed(session, Deed.OPENED_LINK, link.subject)
    return link


def revoke(store: Store, name: str) -> SharedLink:
    """End a link; who opens it from now on sees nothing.

    Raises:
        NotFound: there is no such link.
    """
    with store.begin() as session:
        link = find_link(session, name)
        remove_link(session, link.id)
        record_deed(session, Deed.REVOKED_LINK, link.subject)
    return link
