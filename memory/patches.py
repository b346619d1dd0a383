"""A patch of the event graph as it is written; checks it, and drops invalid items; pure.

Complaints name the item and what to do, since the writer gets them word for word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, Field, NonNegativeInt

from domain.memories import Relation
from domain.settings import MemorySettings
from domain.time import TimeSpan

MAX_SUMMARY_SENTENCES = 8
"""Most sentences of a summary (section 3.3 asks for 4 to 8)."""


class WrittenSegment(BaseModel, frozen=True):
    """A stretch of clips in which one thing happens."""

    label: str = Field(min_length=1)
    summary: str
    clips: tuple[NonNegativeInt, ...]
    extends: str | None = Field(default=None, description="exact label of the one it goes on with")


class WrittenEdge(BaseModel, frozen=True):
    """How one segment stands to another, by exact labels."""

    source: str
    target: str
    relation: str
    explicit: bool = False
    confidence: float = 0.5
    rationale: str = ""
    evidence: tuple[NonNegativeInt, ...] = ()
    removed: bool = False


class WrittenPatch(BaseModel, frozen=True):
    """A patch to the event graph."""

    # The names, descriptions and fields are the schema by which a language model answers: what it
    # adds to them is ignored.

    segments: tuple[WrittenSegment, ...]
    edges: tuple[WrittenEdge, ...] = ()


@dataclass(frozen=True)
class PatchContext:
    """What a patch is checked against.

    Attributes:
        at_clip: The clip after which the patch will hold.
        new: The clips it must cover.
        watched: The span of every clip a segment may hold (done, and not in the future).
        open_segments: The clips of each open segment the patch may refer to, by label.
        edges: Open edges between those, as (source label, target label, relation).
    """

    at_clip: int
    new: tuple[int, ...]
    watched: Mapping[int, TimeSpan]
    open_segments: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    edges: frozenset[tuple[str, str, str]] = frozenset()


Item = Literal["patch", "segment", "edge"]


@dataclass(frozen=True)
class Complaint:
    """What is wrong with one item of a patch; ``index`` counts from 0.

    Items with a ``fatal`` complaint cannot be applied; other complaints only ask for a repair.
    """

    item: Item
    index: int
    text: str
    fatal: bool = True

    def __str__(self) -> str:
        return self.text


def check_patch(
    patch: WrittenPatch, context: PatchContext, settings: MemorySettings
) -> list[Complaint]:
    """Return all complaints about ``patch``; empty where it may be applied as it is."""
    complaints = [*_check_segments(patch, context, settings), *_check_edges(patch, context)]
    if clips := uncovered_clips(patch, context):
        text = f"clips {_join_clips(clips)} are in no segment: every new clip must be in one"
        complaints.append(Complaint("patch", 0, text, fatal=False))
    return complaints


def _check_segments(
    patch: WrittenPatch, context: PatchContext, settings: MemorySettings
) -> Iterator[Complaint]:
    labels: set[str] = set()
    extended: set[str] = set()
    for index, draft in enumerate(patch.segments):
        problems = [
            *_check_wording(draft, settings),
            *_check_clips(draft, context, settings),
            *_check_extension(draft, context, extended),
        ]
        label = _normalise_label(draft.label)
        others = (one for one in context.open_segments if one != draft.extends)
        if label in labels:
            problems.append(
                ("has the label of another segment of this patch: give it its own", True)
            )
        elif label in map(_normalise_label, others):
            problems.append(
                ("has the label of an earlier segment: give it its own, or extend that one", True)
            )
        if index >= settings.segments_max:
            problems.append((f"is one too many: at most {settings.segments_max} a patch", True))
        labels.add(label)
        extended |= {draft.extends} if draft.extends else set()
        for text, fatal in problems:
            yield Complaint("segment", index, f"segment {draft.label!r} {text}", fatal)


def _normalise_label(label: str) -> str:
    return " ".join(label.casefold().split())


def _check_wording(draft: WrittenSegment, settings: MemorySettings) -> Iterator[tuple[str, bool]]:
    if len(draft.label.split()) > settings.label_words:
        yield f"has a label of more than {settings.label_words} words: shorten it", True
    if not draft.label.strip():
        yield "has no label: name what happens", True
    if not draft.summary.strip():
        yield "has no summary: tell what happens in 4 to 8 sentences", True
    elif count_sentences(draft.summary) > MAX_SUMMARY_SENTENCES:
        yield f"has a summary of more than {MAX_SUMMARY_SENTENCES} sentences: shorten it", False


def count_sentences(text: str) -> int:
    """Count the sentences of a text, at least 1."""
    return max(1, len(re.findall(r"[.!?…][\"'”’)\]]*(?:\s|$)", text.strip())))


def _check_clips(
    draft: WrittenSegment, context: PatchContext, settings: MemorySettings
) -> Iterator[tuple[str, bool]]:
    if not draft.clips:
        yield "has no clips: list every clip it covers", True
    if len(set(draft.clips)) != len(draft.clips):
        yield "names a clip twice: list each once", True
    if len(draft.clips) > settings.segment_clips:
        yield f"has more than {settings.segment_clips} clips: begin a new segment", True
    future = [clip for clip in draft.clips if clip > context.at_clip]
    if future:
        yield f"has clips that are in the future: {_join_clips(future)}", True
    watched = context.watched
    missing = [clip for clip in draft.clips if clip <= context.at_clip and clip not in watched]
    if missing:
        yield f"has clips that do not exist: {_join_clips(missing)}", True


def _join_clips(clips: Iterable[int]) -> str:
    return ", ".join(str(clip) for clip in clips)


def _check_extension(
    draft: WrittenSegment, context: PatchContext, extended: set[str]
) -> Iterator[tuple[str, bool]]:
    if draft.extends is None:
        return
    if draft.extends not in context.open_segments:
        yield f"extends {draft.extends!r}, which is no open segment: use its exact label", True
        return
    if draft.extends in extended:
        yield f"extends {draft.extends!r}, which another segment extends already", True
    missing = [clip for clip in context.open_segments[draft.extends] if clip not in draft.clips]
    if missing:
        yield (
            f"loses clips of {draft.extends!r}, which it extends: add {_join_clips(missing)}",
            True,
        )


def _check_edges(patch: WrittenPatch, context: PatchContext) -> Iterator[Complaint]:
    # What an edge may name, and the label it will have: new, open, and old labels of extended.
    endpoints = {label: label for label in context.open_segments}
    endpoints |= {
        draft.extends: draft.label for draft in patch.segments if draft.extends in endpoints
    }
    endpoints |= {draft.label: draft.label for draft in patch.segments}
    keys: set[tuple[str | None, str | None, str]] = set()
    existing = {
        (endpoints.get(source), endpoints.get(target), kind)
        for source, target, kind in context.edges
    }
    for index, draft in enumerate(patch.edges):
        source, target = endpoints.get(draft.source), endpoints.get(draft.target)
        key = (source, target, draft.relation)
        problems = [
            f"names {name!r}, which is no segment: use an exact label"
            for name, label in ((draft.source, source), (draft.target, target))
            if label is None
        ]
        if source is not None and source == target:
            problems.append("leads from a segment to itself: drop it")
        if draft.relation not in set(Relation):
            problems.append(f"has an unknown relation: use one of {', '.join(Relation)}")
        if not math.isfinite(draft.confidence) or not 0 <= draft.confidence <= 1:
            problems.append("has a confidence outside of 0 to 1")
        problems += _check_evidence(draft, context)
        if key in keys:
            problems.append("is there twice: state it once")
        if draft.removed and key not in existing:
            problems.append("is removed, but there is no such edge")
        keys.add(key)
        for text in problems:
            name = f"edge {draft.source!r} -{draft.relation}-> {draft.target!r}"
            yield Complaint("edge", index, f"{name} {text}")


def _check_evidence(draft: WrittenEdge, context: PatchContext) -> Iterator[str]:
    if draft.removed:
        return
    if not draft.rationale.strip():
        yield "has no rationale: say why in one sentence"
    if not draft.evidence:
        yield "has no evidence: name the clips that show it"
    future = [clip for clip in draft.evidence if clip > context.at_clip]
    if future:
        yield f"has evidence that is in the future: {_join_clips(future)}"
    missing = [c for c in draft.evidence if c <= context.at_clip and c not in context.watched]
    if missing:
        yield f"has evidence clips that do not exist: {_join_clips(missing)}"


def uncovered_clips(patch: WrittenPatch, context: PatchContext) -> tuple[int, ...]:
    """Return the new clips that no segment of the patch covers, in order."""
    covered = {clip for draft in patch.segments for clip in draft.clips}
    return tuple(clip for clip in context.new if clip not in covered)


@dataclass(frozen=True)
class DroppedItem:
    """An item that was not applied, and why."""

    item: Item
    draft: WrittenSegment | WrittenEdge
    reasons: tuple[str, ...]


def drop_invalid_items(
    patch: WrittenPatch, context: PatchContext, settings: MemorySettings
) -> tuple[WrittenPatch, list[DroppedItem]]:
    """Drop items until no fatal complaint is left.

    Segments are dropped first, one at a time, since dropping one frees its label, its position and
    the segment it extends for later ones; then invalid edges and those that lost an endpoint.

    Returns:
        A patch without fatal complaints, and what was dropped.
    """
    dropped: list[DroppedItem] = []
    for item in ("segment", "edge"):
        while fatal := [
            one for one in check_patch(patch, context, settings) if one.item == item and one.fatal
        ]:
            index = fatal[0].index
            reasons = [one for one in fatal if one.index == index]
            draft = (patch.segments if item == "segment" else patch.edges)[index]
            dropped.append(
                DroppedItem(reasons[0].item, draft, tuple(str(reason) for reason in reasons))
            )
            field_name = "segments" if item == "segment" else "edges"
            items = [
                draft
                for position, draft in enumerate(getattr(patch, field_name))
                if position != index
            ]
            patch = patch.model_copy(update={field_name: tuple(items)})
    return patch, dropped
