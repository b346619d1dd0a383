"""Resolve refs such as ``m12``, ``s3`` and ``f7`` to rows of the store."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from sqlalchemy.orm import Session

from domain.asking import REF_KINDS, Citation
from domain.memories import MemoryView, Scope
from domain.moments import ResolvedRefs
from domain.time import TimeSpan
from retrieval.keyframe_mode import NEAR_MS, describe, describe_kept
from retrieval.people_in_query import line_text, names_as_of, with_current_names
from store.queries.builds import cited_built
from store.queries.clips import clip_contents
from store.queries.keyframes import cited_kept
from store.queries.search import cited_frames, cited_memories, cited_segments, videos_of_refs

Key = tuple[str, int]
"""Kind, one of ``REF_KINDS``, and row id."""

_REF = re.compile(rf"\[?([{REF_KINDS}])([1-9]\d{{0,17}})\]?")


def cite(session: Session, view: MemoryView, refs: Iterable[str]) -> ResolvedRefs:
    """Look refs up as of ``view``; repeated ones count once, brackets are allowed.

    Returns:
        Citations in the order of the refs, and the refs without a row in view.
    """
    wanted = {ref: _key(ref) for ref in refs}
    keys = {key for key in wanted.values() if key is not None}
    ids = {kind: [number for k, number in keys if k == kind] for kind in REF_KINDS}
    videos = videos_of_refs(session, ids)
    known: dict[Key | None, Citation] = {}
    for scope in (scope for scope in view.scopes if scope.video in videos):
        for citation in _in_scope(session, scope, ids):
            known[_key(citation.ref)] = citation
    citations = [known[key] for key in wanted.values() if key in known]
    unknown = tuple(ref for ref, key in wanted.items() if key not in known)
    return ResolvedRefs(citations=tuple(dict.fromkeys(citations)), unknown=unknown)


def _key(ref: str) -> Key | None:
    match = _REF.fullmatch(ref.strip())
    return (match[1], int(match[2])) if match else None


def _in_scope(
    session: Session, scope: Scope, ids: Mapping[str, Collection[int]]
) -> Iterator[Citation]:
    names = names_as_of(session, scope)
    for line in cited_memories(session, scope, ids["m"]):
        span = TimeSpan.of(line.start_ms, max(line.start_ms, line.end_ms))
        yield _citation(f"m{line.id}", scope, span, line_text(line, names), line.clip)
    for segment, label, summary, start, end in cited_segments(session, scope, ids["s"]):
        text = with_current_names(f"{label}: {summary}", names)
        yield _citation(f"s{segment}", scope, TimeSpan.of(start, end), text, None)
    shown = cited_frames(session, scope, ids["k"])
    contents = clip_contents(session, scope, {frame.clip for frame in shown})
    for frame in shown:
        span = TimeSpan.of(frame.time_ms, frame.time_ms + NEAR_MS)
        text = describe(contents, frame.time_ms, names, frame.description)
        yield _citation(f"k{frame.id}", scope, span, text, frame.clip)
    kept = cited_kept(session, scope, ids["f"])
    contents = clip_contents(session, scope, {one.clip for one in kept})
    for one in kept:
        span = TimeSpan.of(one.time_ms, one.time_ms + NEAR_MS)
        text = describe_kept(contents, one.time_ms, names)
        yield _citation(f"f{one.id}", scope, span, text, one.clip)
    for ref, span, text, clip in cited_built(session, scope, ids["n"], ids["e"], ids["r"]):
        yield _citation(ref, scope, span, with_current_names(text, names), clip)


def _citation(ref: str, scope: Scope, span: TimeSpan, text: str, clip: int | None) -> Citation:
    return Citation(ref=ref, video=scope.video, span=span, text=text, clip=clip)
