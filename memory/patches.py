"""Checks a patch of the event graph before it is applied, and drops what is wrong; pure.

Complaints name the item and what to do, since they go back to the writer word for word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from domain.memories import EdgeDraft, EventPatch, Relation, SegmentDraft
from domain.settings import MemorySettings
from domain.time import TimeSpan

SUMMARY_SENTENCES = 8
"""The longest summary; four sentences are asked for where there is as much to tell."""


@dataclass(frozen=True)
class Ground:
    """What a patch stands on: all that a check needs to know.

    Attributes:
        at_clip: The clip after which the patch will hold.
        new: The clips it must cover.
        watched: The span of every clip a segment may hold (done, and not in the future).
        open: The clips of each open segment the patch may refer to, by label.
        edges: Open edges between those, as (source label, target label, relation).
    """

    at_clip: int
    new: tuple[int, ...]
    watched: Mapping[int, TimeSpan]
    open: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    edges: frozenset[tuple[str, str, str]] = frozenset()


Item = Literal["patch", "segment", "edge"]


@dataclass(frozen=True)
class Complaint:
    """What is wrong with one item of a patch; ``index`` counts from 0.

    ``fatal`` items cannot be applied; the others are only asked to be better.
    """

    item: Item
    index: int
    text: str
    fatal: bool = True

    def __str__(self) -> str:
        return self.text


def check(patch: EventPatch, ground: Ground, settings: MemorySettings) -> list[Complaint]:
    """Everything that is wrong with ``patch``: an empty list where it may be applied as it is."""
    return [
        *_segments(patch, ground, settings),
        *_edges(patch, ground),
        *_cover(patch, ground),
    ]


def _segments(patch: EventPatch, ground: Ground, settings: MemorySettings) -> Iterator[Complaint]:
    taken: set[str] = set()
    extended: set[str] = set()
    for index, draft in enumerate(patch.segments):
        problems = [
            *_wording(draft, settings),
            *_clips(draft, ground, settings),
            *_extension(draft, ground, extended),
            *_label(draft, ground, taken),
        ]
        if index >= settings.segments_max:
            problems.append((f"is one too many: at most {settings.segments_max} a patch", True))
        taken.add(_key(draft.label))
        extended |= {draft.extends} if draft.extends else set()
        for text, fatal in problems:
            yield Complaint("segment", index, f"segment {draft.label!r} {text}", fatal)


def _key(label: str) -> str:
    return " ".join(label.casefold().split())


def _wording(draft: SegmentDraft, settings: MemorySettings) -> Iterator[tuple[str, bool]]:
    if len(draft.label.split()) > settings.label_words:
        yield f"has a label of more than {settings.label_words} words: shorten it", True
    if not draft.label.strip():
        yield "has no label: name what happens", True
    if not draft.summary.strip():
        yield "has no summary: tell what happens in 4 to 8 sentences", True
    elif count_sentences(draft.summary) > SUMMARY_SENTENCES:
        yield f"has a summary of more than {SUMMARY_SENTENCES} sentences: shorten it", False


def count_sentences(text: str) -> int:
    """How many sentences a text has, at least 1."""
    return max(1, len(re.findall(r"[.!?…][\"'”’)\]]*(?:\s|$)", text.strip())))


def _clips(
    draft: SegmentDraft, ground: Ground, settings: MemorySettings
) -> Iterator[tuple[str, bool]]:
    if not draft.clips:
        yield "has no clips: list every clip it covers", True
    if len(set(draft.clips)) != len(draft.clips):
        yield "names a clip twice: list each once", True
    if len(draft.clips) > settings.segment_clips:
        yield f"has more than {settings.segment_clips} clips: begin a new segment", True
    future = [clip for clip in draft.clips if clip > ground.at_clip]
    if future:
        yield f"has clips that are in the future: {_list(future)}", True
    known = ground.watched
    missing = [clip for clip in draft.clips if clip <= ground.at_clip and clip not in known]
    if missing:
        yield f"has clips that do not exist: {_list(missing)}", True


def _list(clips: Iterable[int]) -> str:
    return ", ".join(str(clip) for clip in clips)


def _extension(
    draft: SegmentDraft, ground: Ground, extended: set[str]
) -> Iterator[tuple[str, bool]]:
    if draft.extends is None:
        return
    if draft.extends not in ground.open:
        yield f"extends {draft.extends!r}, which is no open segment: use its exact label", True
        return
    if draft.extends in extended:
        yield f"extends {draft.extends!r}, which another segment extends already", True
    lost = [clip for clip in ground.open[draft.extends] if clip not in draft.clips]
    if lost:
        yield f"loses clips of {draft.extends!r}, which it extends: add {_list(lost)}", True


def _label(draft: SegmentDraft, ground: Ground, taken: set[str]) -> Iterator[tuple[str, bool]]:
    others = {_key(label) for label in ground.open if label != draft.extends}
    if _key(draft.label) in taken:
        yield "has the label of another segment of this patch: give it its own", True
    elif _key(draft.label) in others:
        yield "has the label of an earlier segment: give it its own, or extend that one", True


def endpoints(patch: EventPatch, ground: Ground) -> dict[str, str]:
    """What an edge may name, and the label it will have: new, open, and old labels of extended."""
    known = {label: label for label in ground.open}
    known |= {draft.extends: draft.label for draft in patch.segments if draft.extends in known}
    return known | {draft.label: draft.label for draft in patch.segments}


def _edges(patch: EventPatch, ground: Ground) -> Iterator[Complaint]:
    known = endpoints(patch, ground)
    seen: set[tuple[str | None, str | None, str]] = set()
    there = {(known.get(source), known.get(target), kind) for source, target, kind in ground.edges}
    for index, draft in enumerate(patch.edges):
        ends = (known.get(draft.source), known.get(draft.target), draft.relation)
        problems = [*_ends(draft, ends), *_relation(draft), *_grounds(draft, ground)]
        if ends in seen:
            problems.append("is there twice: state it once")
        if draft.removed and ends not in there:
            problems.append("is removed, but there is no such edge")
        seen.add(ends)
        for text in problems:
            name = f"edge {draft.source!r} -{draft.relation}-> {draft.target!r}"
            yield Complaint("edge", index, f"{name} {text}")


def _ends(draft: EdgeDraft, ends: tuple[str | None, str | None, str]) -> Iterator[str]:
    source, target, _ = ends
    for name, found in ((draft.source, source), (draft.target, target)):
        if found is None:
            yield f"names {name!r}, which is no segment: use an exact label"
    if source is not None and source == target:
        yield "leads from a segment to itself: drop it"


def _relation(draft: EdgeDraft) -> Iterator[str]:
    if draft.relation not in set(Relation):
        yield f"has an unknown relation: use one of {', '.join(Relation)}"
    if not math.isfinite(draft.confidence) or not 0 <= draft.confidence <= 1:
        yield "has a confidence outside of 0 to 1"


def _grounds(draft: EdgeDraft, ground: Ground) -> Iterator[str]:
    if draft.removed:
        return
    if not draft.rationale.strip():
        yield "has no rationale: say why in one sentence"
    future = [clip for clip in draft.evidence if clip > ground.at_clip]
    if future:
        yield f"has evidence that is in the future: {_list(future)}"
    missing = [c for c in draft.evidence if c <= ground.at_clip and c not in ground.watched]
    if missing:
        yield f"has evidence clips that do not exist: {_list(missing)}"


def uncovered(patch: EventPatch, ground: Ground) -> tuple[int, ...]:
    """The new clips that no segment of the patch holds, in order."""
    covered = {clip for draft in patch.segments for clip in draft.clips}
    return tuple(clip for clip in ground.new if clip not in covered)


def _cover(patch: EventPatch, ground: Ground) -> Iterator[Complaint]:
    left = uncovered(patch, ground)
    if left:
        text = f"clips {_list(left)} are in no segment: every new clip must be in one"
        yield Complaint("patch", 0, text, fatal=False)


@dataclass(frozen=True)
class Dropped:
    """An item that was not applied, and why."""

    item: Item
    draft: SegmentDraft | EdgeDraft
    reasons: tuple[str, ...]


def drop(
    patch: EventPatch, ground: Ground, settings: MemorySettings
) -> tuple[EventPatch, list[Dropped]]:
    """Take out every item that cannot be applied, until the rest can.

    Segments go first, one round at a time, since dropping one frees its label, its place and its
    extended segment for those after it; then the edges that are wrong or lost an end.

    Returns:
        A patch without fatal complaints, and what was dropped.
    """
    dropped: list[Dropped] = []
    for item in ("segment", "edge"):
        while reasons := _first_wrong(check(patch, ground, settings), item):
            index = reasons[0].index
            draft = (patch.segments if item == "segment" else patch.edges)[index]
            dropped.append(Dropped(reasons[0].item, draft, tuple(str(one) for one in reasons)))
            patch = _without(patch, item, index)
    return patch, dropped


def _first_wrong(complaints: Iterable[Complaint], item: str) -> list[Complaint]:
    wrong = [one for one in complaints if one.item == item and one.fatal]
    return [one for one in wrong if one.index == wrong[0].index]


def _without(patch: EventPatch, item: str, index: int) -> EventPatch:
    field_name = "segments" if item == "segment" else "edges"
    items = [one for place, one in enumerate(getattr(patch, field_name)) if place != index]
    return patch.model_copy(update={field_name: tuple(items)})
