"""KEYFRAME: images of the focus segment's clips, ranked by the query and spread over clips."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from domain.asking import Evidence, Mode
from domain.memories import Segment
from domain.people import escape_tags
from domain.time import TimeSpan
from domain.wording import describe_picture, pluralise
from retrieval.closeness import decayed
from retrieval.line_ranking import LINE, line_scores
from retrieval.line_set import Ints, Scores
from retrieval.people_in_query import line_text, with_names
from retrieval.query_context import QueryContext, nothing_close
from retrieval.result import Retrieval, ShownKeyframe
from retrieval.terms import terms
from store.queries.clip_contents import ClipContents, KeyframeOnClip

NEAR_MS = 1_000
"""Who was seen this close to a frame was on it; an image as evidence stands for this long."""

NEVER = -100.0
"""The score of an image of a clip of which nothing is remembered: after all others."""
ON_IT = 6.0
"""What it counts, in standard deviations, when all that is looked for can be told from a frame."""
FAR_MS = 10_000
"""So far from a line an image counts one standard deviation less for it."""


@dataclass(frozen=True)
class ImageModel:
    """An image-text model: its name, and the cosine from which an image shows what is context."""

    name: str
    close: float


@dataclass(frozen=True)
class Album:
    """Keyframes of one video, with what is known to be ``on`` them.

    ``likeness``: the cosine of each frame with the query where the profile has an image-text model.
    ``described``: the cosine of each frame's description with the question.
    """

    video: str
    on: ClipContents
    likeness: Mapping[int, float]
    described: Mapping[int, float] = field(default_factory=dict)


def describe(album: Album, frame: KeyframeOnClip, names: Mapping[str, str], heard: str = "") -> str:
    """What is known to be on a frame, for models without eyes.

    Its description, and what was recognised on it that the description does not say.
    """
    said = with_names(frame.description or "", names)
    tags = [
        f"<{kind}_{number}>"
        for start, end, kind, number in album.on.sightings
        if kind == "face" and start - NEAR_MS <= frame.time_ms <= end + NEAR_MS
    ]
    who = dict.fromkeys(with_names(tag, names) for tag in tags)
    read = [text for time, text in album.on.texts if time == frame.time_ms]
    things = [thing for thing in album.on.objects if thing.time_ms == frame.time_ms]
    recognised = describe_picture(
        [one for one in who if one not in said],
        [] if said else things,
        [text for text in read if escape_tags(text) not in said],
    )
    parts = [said, recognised, f"at that time: {heard}" if heard else ""]
    return "; ".join(part for part in parts if part) or "nothing was recognised on it"


def keyframe(
    context: QueryContext,
    focus: Segment | None,
    albums: Sequence[Album],
    images: int,
    images_model: ImageModel | None = None,
    seen: Collection[str] = (),
) -> Retrieval:
    """At most ``images`` images: each clip's best before any clip's second.

    Those that were shown already come after all others.

    Args:
        context: the search.
        focus: whose clips' images they are; None: all in view.
        albums: the images.
        images: how many at most.
        images_model: the image-text model that likeness comes from, where there is one.
        seen: refs that were shown already.
    """
    scored = [one for album in albums for one in _scored(context, album)]
    if any(album.likeness for album in albums):
        scored = [
            _by_likeness(album, one)
            for album in albums
            for one in scored
            if one.video == album.video
        ]
    fresh = [one for one in scored if f"k{one.frame.id}" not in seen]
    again = [one for one in scored if f"k{one.frame.id}" in seen]
    chosen = [*spread_over_clips(fresh), *spread_over_clips(again)][:images]
    shown = _shown(context, albums, chosen)
    evidence = tuple(_evidence(one) for one in shown)
    clips = sum(len({frame.clip for frame in album.on.frames}) for album in albums)
    return Retrieval(
        mode=Mode.KEYFRAME,
        query=context.query,
        focus=focus,
        evidence=evidence,
        images=shown,
        nothing_close=_nothing_close(context, albums, evidence, images_model),
        searched=context.searched(f"the keyframes of {clips} clips {how(albums, images_model)}"),
    )


def how(albums: Sequence[Album], images_model: ImageModel | None) -> str:
    """What images are ranked by, said plainly."""
    described = any(album.described for album in albums)
    words = f"by {'their descriptions and ' if described else ''}the words of their time"
    if images_model is None:
        return f"{words} (this profile has no image-text model)"
    if not any(album.likeness for album in albums):
        return f"{words} (they were watched without {images_model.name})"
    return f"by their likeness under {images_model.name}"


def _nothing_close(
    context: QueryContext,
    albums: Sequence[Album],
    evidence: Sequence[Evidence],
    images_model: ImageModel | None,
) -> bool:
    """By what was remembered then; an image-text model has a scale of its own."""
    best = max((value for album in albums for value in album.likeness.values()), default=None)
    if best is not None and images_model is not None:
        return best < images_model.close
    return nothing_close(evidence, context.candidates.view_lines)


@dataclass(frozen=True)
class Scored:
    """A frame with its score and the line of memory closest to it in time, if any."""

    video: str
    frame: KeyframeOnClip
    score: float
    line: int | None


def spread_over_clips(scored: Sequence[Scored]) -> list[Scored]:
    """Best first, but every clip's n-th image before any clip's next."""
    ranked = sorted(scored, key=lambda one: (-one.score, one.video, one.frame.time_ms))
    turn: dict[tuple[str, int], int] = {}
    rounds = []
    for one in ranked:
        clip = (one.video, one.frame.clip)
        turn[clip] = turn.get(clip, -1) + 1
        rounds.append(turn[clip])
    return [ranked[i] for i in sorted(range(len(ranked)), key=lambda i: (rounds[i], i))]


def _scored(context: QueryContext, album: Album) -> list[Scored]:
    clips = {frame.clip for frame in album.on.frames}
    remembered = {clip: _lines_of_clip(context, album.video, clip) for clip in clips}
    found = []
    for frame in album.on.frames:
        line, score = remembered[frame.clip].at(frame.time_ms)
        score = max(score, _by_description(context, album, frame))
        score += ON_IT * _on_it(context, album, frame)
        found.append(Scored(album.video, frame, score, line))
    return found


def _by_description(context: QueryContext, album: Album, frame: KeyframeOnClip) -> float:
    """The score of a frame's description, as if it were a line of its clip."""
    cosine = album.described.get(frame.id)
    if cosine is None or context.relevance is None:
        return NEVER
    own = LINE * float(context.relevance.scales[0].of(np.array([cosine]))[0])
    cells = context.lines.cells_of(album.video, [frame.clip])
    return own + (float(context.relevance.cells[cells[0]]) if len(cells) else 0.0)


def _by_likeness(album: Album, one: Scored) -> Scored:
    """The image by its likeness to the query; those without come after all that have one."""
    return replace(one, score=album.likeness.get(one.frame.id, one.score + NEVER))


def _on_it(context: QueryContext, album: Album, frame: KeyframeOnClip) -> float:
    """The share of the query's words that a frame's description or what is on it has, in [0, 1]."""
    shown = [text for time, text in album.on.texts if time == frame.time_ms]
    labels = [thing.label for thing in album.on.objects if thing.time_ms == frame.time_ms]
    said = with_names(frame.description or "", context.people.names(album.video))
    words = set(terms(" ".join([said, *shown, *labels, *map(pluralise, labels)])))
    return len(context.words & words) / max(1, len(context.words))


@dataclass(frozen=True, eq=False)
class _ClipLines:
    """What was remembered of a clip: L lines, when each starts and ends (2, L), and scores (L,).

    Without any, an image of it comes after all others.
    """

    lines: Ints
    sides: Ints
    scores: Scores

    def at(self, time_ms: int) -> tuple[int | None, float]:
        """The best line of those nearest in time, with its score."""
        if not len(self.lines):
            return None, NEVER
        starts, ends = self.sides
        away = np.maximum(np.maximum(starts - time_ms, time_ms - ends), 0)
        near = np.flatnonzero(away == away.min())
        best = int(near[self.scores[near].argmax()])
        return int(self.lines[best]), float(self.scores[best]) - float(away[best]) / FAR_MS


_NO_LINES = _ClipLines(np.zeros(0, dtype=np.int64), np.zeros((2, 0), dtype=np.int64), np.zeros(0))


def _lines_of_clip(context: QueryContext, video: str, clip: int) -> _ClipLines:
    lines = context.lines
    cells = lines.cells_of(video, [clip])
    if not len(cells) or context.relevance is None:
        return _NO_LINES
    own = lines.lines_of(cells.tolist())
    scores = line_scores(context.candidates, context.relevance, own).max(axis=0)
    sides = np.stack([lines.arrays.start_ms[own], lines.arrays.end_ms[own]])
    return _ClipLines(own, sides, scores)


def _shown(
    context: QueryContext, albums: Sequence[Album], chosen: Sequence[Scored]
) -> tuple[ShownKeyframe, ...]:
    by_video = {album.video: album for album in albums}
    scores = _closeness(context, albums, chosen)
    return tuple(
        ShownKeyframe(
            id=one.frame.id,
            video=one.video,
            clip=one.frame.clip,
            time_ms=one.frame.time_ms,
            blob=one.frame.blob,
            description=_description(context, by_video[one.video], one),
            score=score,
        )
        for one, score in zip(chosen, scores, strict=True)
    )


def _description(context: QueryContext, album: Album, one: Scored) -> str:
    names = context.people.names(album.video)
    return describe(album, one.frame, names, _heard(context, one, names))


def _heard(context: QueryContext, one: Scored, names: Mapping[str, str]) -> str:
    """What was remembered of the very time of a frame."""
    if one.line is None:
        return ""
    row = context.lines.line(one.line)[1]
    near = row.start_ms - NEAR_MS <= one.frame.time_ms <= row.end_ms + NEAR_MS
    return line_text(row, names) if near else ""


def _closeness(
    context: QueryContext, albums: Sequence[Album], chosen: Sequence[Scored]
) -> list[float]:
    """Scores in [0, 1], falling from the closest of the images."""
    if not chosen:
        return []
    likeness = {frame: value for album in albums for frame, value in album.likeness.items()}
    if likeness:
        return [float(np.clip(likeness.get(one.frame.id, 0.0), 0, 1)) for one in chosen]
    lines = [one.line for one in chosen if one.line is not None]
    described = {frame: cosine for album in albums for frame, cosine in album.described.items()}
    close = [context.closeness(line) for line in lines]
    close += [
        context.text_closeness(described[one.frame.id], one.frame.description or "")
        for one in chosen
        if one.frame.id in described
    ]
    best = max(close, default=0.0)
    falling = np.minimum.accumulate([one.score for one in chosen])
    return decayed(best, [float(score) for score in falling])


def _evidence(shown: ShownKeyframe) -> Evidence:
    return Evidence(
        ref=shown.ref,
        video=shown.video,
        span=TimeSpan.of(shown.time_ms, shown.time_ms + NEAR_MS),
        text=shown.description,
        score=shown.score,
        clip=shown.clip,
    )
