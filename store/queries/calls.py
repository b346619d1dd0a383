"""Calls to language models, and the message pool that holds each distinct message once."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, any_, cast, func, select, tuple_
from sqlalchemy.dialects.postgresql import JSONPATH, insert
from sqlalchemy.orm import Session

from domain.calls import CallRecord, CallTotals
from domain.moments import SearchCost
from domain.rights import Deed
from store.migrations import recording
from store.tables.schema import AuditRow, MessageRow, ModelCallRow

EMBED = "embed"
"""The purpose of requests to an embeddings endpoint, which are no part of a run's dialogue."""

SEARCH = "search"
"""The purpose of such requests of single searches, which are of no video and no question."""

NAME_BYTES = 20
"""As many as git's: a call refers to all its messages, which are many and often short."""


def message_hash(message: Mapping[str, Any]) -> str:
    """Return the first 160 bits of the SHA-256 of the message's canonical JSON, in URL-safe base64.

    Canonical means sorted keys, no spaces, UTF-8.
    """
    canonical = json.dumps(message, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(canonical.encode()).digest()[:NAME_BYTES]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def add_call(session: Session, call: CallRecord) -> int:
    """Store a call and its messages; return the call's id."""
    hashes = [message_hash(message) for message in call.messages]
    pool: dict[str, Mapping[str, Any]] = dict(zip(hashes, call.messages, strict=True))
    values = {k: v for k, v in vars(call).items() if k != "messages"}
    row = ModelCallRow(**values, messages=hashes)
    with recording(session):
        if pool:
            rows = [{"hash": key, "content": dict(pool[key])} for key in sorted(pool)]
            session.execute(insert(MessageRow).values(rows).on_conflict_do_nothing())
        session.add(row)
        session.flush()
    return row.id


def messages_of(session: Session, hashes: Sequence[str]) -> list[dict[str, Any]]:
    """Return the pool's messages under ``hashes``, in that order; a hash may repeat."""
    query = select(MessageRow.hash, MessageRow.content).where(MessageRow.hash.in_(set(hashes)))
    rows = session.execute(query).all()
    pool: dict[str, dict[str, Any]] = dict(rows)
    return [pool[key] for key in hashes]


def _record(row: ModelCallRow, messages: Sequence[Mapping[str, Any]] = ()) -> CallRecord:
    known = {one.name: getattr(row, one.name) for one in fields(CallRecord)}
    return CallRecord(**{**known, "messages": messages})


def calls_of(session: Session, trajectory: str) -> list[CallRecord]:
    """Return the calls to language models that a trajectory made, in order."""
    row = ModelCallRow
    query = select(row).where(row.trajectory_id == trajectory, row.purpose != EMBED)
    return [_record(one) for one in session.scalars(query.order_by(row.id))]


def embeddings_of(session: Session, trajectory: str) -> list[CallRecord]:
    """Return a trajectory's requests to an embeddings endpoint, in order."""
    row = ModelCallRow
    query = select(row).where(row.trajectory_id == trajectory, row.purpose == EMBED)
    return [_record(one) for one in session.scalars(query.order_by(row.id))]


def find_call(
    session: Session, request_hash: str, trajectory: str, skip: int = 0
) -> CallRecord | None:
    """Return the ``skip``-th recorded call of that request of a trajectory, with its messages."""
    row = ModelCallRow
    query = select(row).where(row.request_hash == request_hash, row.trajectory_id == trajectory)
    found = session.scalar(query.order_by(row.id).offset(skip).limit(1))
    return None if found is None else _record(found, messages_of(session, found.messages))


def call_of_video(
    session: Session, video: str, request: str, skip: int, since: datetime | None, *, sound: bool
) -> CallRecord | None:
    """Return the ``skip``-th answered call of that request by a video's writers, oldest first.

    Not of calls that came with an import: they were not made here. ``since``: only calls after that
    time; ``sound``: only replies that could be parsed.
    """
    row, log = ModelCallRow, AuditRow
    imported = select(log.at).where(log.deed == Deed.IMPORTED, log.subject == video)
    here = ~imported.where(log.at >= row.called_at).exists()
    query = select(row).where(
        row.video_id == video,
        row.trajectory_id.is_(None),
        row.request_hash == request,
        here,
        row.reply.is_not(None),
    )
    if since is not None:
        query = query.where(row.called_at > since)
    if sound:
        query = query.where(row.error.is_(None))
    found = session.scalar(query.order_by(row.id).offset(skip).limit(1))
    return None if found is None else _record(found)


def _totals() -> list[ColumnElement[Any]]:
    row = ModelCallRow
    counts = (func.count().label("calls"), func.count(row.error).label("failed"))
    amounts = (row.tokens_in, row.tokens_out, row.cost_usd, row.ms)
    return [*counts, *(func.sum(amount).label(amount.key) for amount in amounts)]


def usage_by_clip(session: Session, video_id: str) -> dict[int | None, CallTotals]:
    """Return what a video's writers took, by clip.

    The calls for a patch of the event graph count for the clip after which it is valid. Under None
    are those for no single clip: vectors of captions, and new vectors.
    """
    row = ModelCallRow
    query = (
        select(row.clip, *_totals())
        .where(row.video_id == video_id, row.trajectory_id.is_(None))
        .group_by(row.clip)
        .order_by(row.clip)
    )
    used = (dict(found) for found in session.execute(query).mappings())
    return {one.pop("clip"): CallTotals.model_validate(one) for one in used}


def mean_call(session: Session, model: str, purpose: str) -> tuple[float, float] | None:
    """Return the mean seconds and reply tokens of a model's calls for a purpose; None for none."""
    row = ModelCallRow
    of_kind = and_(row.model == model, row.purpose == purpose, row.error.is_(None))
    query = select(func.avg(row.ms), func.avg(row.tokens_out)).where(of_kind)
    ms, tokens = session.execute(query).one()
    return None if ms is None else (float(ms) / 1_000, float(tokens))


def tokens_a_character(session: Session, model: str) -> float | None:
    """Return the tokens a character of the texts that a model embedded; None without any."""
    row = ModelCallRow
    query = select(func.sum(row.tokens_in), func.sum(row.reply["characters"].as_integer()))
    query = query.where(row.model == model, row.purpose == EMBED, row.reply.is_not(None))
    tokens, length = session.execute(query).one()
    return tokens / length if length else None


def usage_of_searches(session: Session) -> SearchCost:
    """Return what the single searches on record took."""
    row = ModelCallRow
    tokens, cost = (func.coalesce(func.sum(one), 0) for one in (row.tokens_in, row.cost_usd))
    query = select(func.count(), tokens, cost).where(row.purpose == SEARCH)
    requests, tokens_in, cost_usd = session.execute(query).one()
    return SearchCost(requests=requests, tokens=int(tokens_in), cost_usd=float(cost_usd))


def mean_step_of_builder(session: Session, model: str, builder: str) -> CallTotals | None:
    """Return what a step of builds of a strategy took in the mean, of a model's calls on record.

    None if there are none.
    """
    row = ModelCallRow
    steps = func.count(func.distinct(tuple_(row.video_id, row.clip))).label("steps")
    of_builder = row.purpose.startswith(f"{builder} ", autoescape=True)
    query = select(steps, *_totals()).where(row.model == model, of_builder)
    taken = dict(session.execute(query).mappings().one())
    count = taken.pop("steps")
    return CallTotals.model_validate(taken) * (1 / count) if count else None


def images_sent(session: Session, video_id: str) -> int:
    """Return how many images and videos a video's writers were sent, as often as they were."""
    row, message = ModelCallRow, MessageRow
    path = cast('$.content[*] ? (@.type == "image" || @.type == "video")', JSONPATH)
    shown = func.jsonb_array_length(func.jsonb_path_query_array(message.content, path))
    query = select(func.sum(shown)).join_from(row, message, message.hash == any_(row.messages))
    return session.scalar(query.where(row.video_id == video_id, row.trajectory_id.is_(None))) or 0
