"""Builds WorldMM's memory of a video: captions at four scales, triples, what lasts, and frames."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import cv2
import numpy as np

from agent.builder import BuildModels, Embed, MemoryBuilder, note_rules
from agent.reasoners.port import Unreadable
from domain.built import (
    BuiltMemory,
    Change,
    Entity,
    EntityKey,
    Node,
    Relation,
    WatchedClip,
)
from domain.media import Video
from domain.memories import Memory, MemoryKind
from domain.people import TAG
from domain.sentences import EntityKind, StatedFacts, Triple
from domain.time import TimeSpan
from perception.frame_keeper import FrameKeeper, FrameToKeep, KeptFrames, State
from perception.quality import laplacian, variance
from retrieval.chapters import BREAK, DocumentCounts, coarser_caption
from retrieval.english import Known, is_narrated
from strategies.worldmm import captions, semantic
from strategies.worldmm.captions import MENTIONED, SEMANTIC
from strategies.worldmm.graph import Vectors
from strategies.worldmm.model_writer import ModelWriter
from strategies.worldmm.settings import SECOND, WorldMemorySettings

if TYPE_CHECKING:
    from domain.media import Clip, Video
    from models.ports import Image, ImageEncoder


_LOG = logging.getLogger(f"homer.{__name__}")


def world_builder(settings: WorldMemorySettings) -> MemoryBuilder:
    """Return what builds ten minutes at a time, by rules or with a language model."""
    return MemoryBuilder(
        version=1,
        step_ms=settings.semantic_window_ms,
        look_back_ms=max(settings.scales_ms[0], settings.short_scales_ms[0]),
        begin=partial(WorldBuild, settings),
    )


class WorldBuild:
    """One build: what it still needs of what came before.

    Args:
        video: its length decides the scales.
        built: what was built before.
        earlier: the last clips that were built.
        models: the text encoder, and the language model if there is one.
    """

    def __init__(
        self,
        settings: WorldMemorySettings,
        video: Video,
        built: BuiltMemory,
        earlier: Sequence[WatchedClip],
        models: BuildModels,
    ) -> None:
        self._settings, self._embed = settings, models.embed
        self._parser = models.sentences
        self._parser.load()
        self._writer = ModelWriter(models.model, settings) if models.model else None
        self._scales = settings.scales(video.duration_ms or None)
        self._built_ms = earlier[-1].span.end_ms if earlier else 0
        self._lines = seen_lines(earlier)
        scales = {captions.level_of(scale): scale for scale in self._scales}
        stored = [(scales[node.level], node) for node in built.nodes if node.level in scales]
        self._captions = {(scale, node.number): node.text for scale, node in stored}
        self._counts = DocumentCounts()
        for (scale, _), text in self._captions.items():
            if scale == self._scales[0]:
                self._counts.add(text)
        self._types = {entity.key.name: entity.key.type for entity in built.entities}
        by_model = SemanticByModel(settings, self._writer, models.embed) if self._writer else None
        finest = captions.level_of(self._scales[0])
        self._semantic = SemanticBuild(settings, built, finest, self._key, by_model)

    def step(self, clips: Sequence[WatchedClip], *, ended: bool) -> Change:
        """Return the captions that these clips complete, with their entities and triples."""
        if not clips:
            return Change()
        lines = seen_lines(clips)
        self._lines += lines
        seen_ms = clips[-1].span.end_ms
        people = {name for name, kind in self._types.items() if kind == EntityKind.PERSON}
        people |= {who for line in lines if (who := captions.speaker_of(line))}
        described = [line.text for line in lines if not captions.speaker_of(line)]
        names = tuple(sorted(name for name in people if not TAG.fullmatch(name)))
        known = Known(people=names, narrated=bool(described) and is_narrated(described))
        nodes, written = [], []
        for window in self._due(seen_ms, ended=ended):
            text = self._caption(window)
            if text:
                end_ms = min(window.end_ms, seen_ms)
                clip = next((c.clip for c in clips if c.span.end_ms >= end_ms), clips[-1].clip)
                nodes.append(self._node(window, text, clip, seen_ms))
                written.append((window, clip, self._written_facts(text, known)))
        left = [n.text for n, (*_, found) in zip(nodes, written, strict=True) if found is None]
        by_rules = iter(captions.extract(self._parser, left, known))
        extracts = [(window, clip, found or next(by_rules)) for window, clip, found in written]
        before = frozenset(self._types)
        for _, _, found in extracts:
            for entity in found.entities:
                self._types.setdefault(entity.name, str(entity.kind))
        relations = [
            relation
            for window, clip, found in extracts
            for relation in self._relations(found, window, clip, seen_ms)
        ]
        span = TimeSpan.of(clips[0].span.start_ms, seen_ms)
        lasting, closed = self._semantic.step(relations, span, clips[-1].clip)
        finest = self._scales[0]
        open_from = seen_ms // finest * finest
        self._lines = [line for line in self._lines if line.span.start_ms >= open_from]
        self._built_ms = seen_ms
        relations += lasting
        first: dict[EntityKey, int] = {}
        for relation in relations:
            for key in (relation.subject, relation.object):
                first[key] = min(first.get(key, relation.from_clip), relation.from_clip)
        new = {key: clip for key, clip in first.items() if key.name not in before}
        triples = [one for one in relations if one.predicate != captions.MENTIONED]
        texts = [node.text for node in nodes] + [key.name for key in new]
        distinct = list(dict.fromkeys([*texts, *(one.text for one in triples)]))
        vectors = dict(zip(distinct, self._embed(distinct), strict=True)) if distinct else {}
        return Change(
            nodes=[replace(node, vector=vectors[node.text]) for node in nodes],
            entities=[Entity(key, clip, vector=vectors[key.name]) for key, clip in new.items()],
            relations=[replace(one, vector=vectors.get(one.text)) for one in relations],
            closed=closed,
        )

    def _due(self, seen_ms: int, *, ended: bool) -> Iterator[captions.ScaleWindow]:
        times = [line.span.start_ms for line in self._lines]
        finest = self._scales[0]
        times += [number * finest for scale, number in self._captions if scale == finest]
        coarsest = self._scales[-1]
        open_from = self._built_ms // coarsest * coarsest
        recent = [time for time in times if time >= open_from]
        yield from captions.due_windows(self._scales, recent, self._built_ms, seen_ms, ended=ended)

    def _caption(self, window: captions.ScaleWindow) -> str:
        """Write the caption of a window; "" where there was nothing."""
        finer = captions.summarised_scale(self._scales, window.scale_ms)
        if finer is None:
            text = captions.finest_caption(
                line
                for line in self._lines
                if window.span.start_ms <= line.span.start_ms < window.span.end_ms
            )
            text = self._written(window, text.split(BREAK), text)
            if text:
                self._counts.add(text)
        else:
            parts = [(one.scale_ms, one.number) for one in captions.finer_windows(window, finer)]
            texts = [self._captions[part] for part in parts if part in self._captions]
            text = coarser_caption(texts, self._counts, self._settings.summary_sentences)
            text = self._written(window, texts, text)
        if text:
            self._captions[window.scale_ms, window.number] = text
        return text

    def _written(self, window: captions.ScaleWindow, lines: Sequence[str], by_rules: str) -> str:
        """Return the model's caption; that by rules without a model, or without a reply."""
        if self._writer is None or not by_rules:
            return by_rules
        try:
            return self._writer.caption(window.span, lines)
        except Unreadable:
            note_rules(_LOG, "the caption of %s is by rules: no reply could be read", window.span)
        return by_rules

    def _written_facts(self, caption: str, known: Known) -> StatedFacts | None:
        """Return the model's entities and triples of a caption; None without a model or a reply."""
        if self._writer is None:
            return None
        try:
            return self._writer.facts(caption, known.people)
        except Unreadable:
            note_rules(_LOG, "the triples of a caption are by rules: no reply could be read")
        return None

    def _node(self, window: captions.ScaleWindow, text: str, clip: int, seen_ms: int) -> Node:
        finer = captions.summarised_scale(self._scales, window.scale_ms)
        parts = [] if finer is None else list(captions.finer_windows(window, finer))
        return Node(
            level=captions.level_of(window.scale_ms),
            number=window.number,
            text=text,
            span=TimeSpan.of(window.span.start_ms, min(window.end_ms, seen_ms)),
            from_clip=clip,
            children=tuple(
                one.number for one in parts if (one.scale_ms, one.number) in self._captions
            ),
        )

    def _relations(
        self, found: StatedFacts, window: captions.ScaleWindow, clip: int, seen_ms: int
    ) -> Iterator[Relation]:
        """Yield the triples of a caption, and a mention of every entity that is in none."""
        ends = {name for triple in found.triples for name in (triple.subject, triple.object)}
        stated = [(one.subject, one.predicate, one.object) for one in found.triples]
        mentions = [
            (e.name, captions.MENTIONED, e.name) for e in found.entities if e.name not in ends
        ]
        level = captions.level_of(window.scale_ms)
        for subject, predicate, target in [*stated, *mentions]:
            yield Relation(
                level=level,
                subject=self._key(subject),
                predicate=predicate,
                object=self._key(target),
                span=TimeSpan.of(window.span.start_ms, min(window.end_ms, seen_ms)),
                from_clip=clip,
                evidence=(clip,),
                node=(level, window.number),
            )

    def _key(self, name: str) -> EntityKey:
        return EntityKey(self._types.setdefault(name, str(EntityKind.CONCEPT)), name)


def seen_lines(clips: Iterable[WatchedClip]) -> list[Memory]:
    """Return what happened in clips: their episodic lines."""
    return [one for clip in clips for one in clip.lines if one.kind is MemoryKind.EPISODIC]


# Semantic triples, built as episodic ones come in: what lasts, and what takes whose place.


# What lasts of some minutes by a language model, consolidated with what is known already.


class SemanticByModel:
    """Draws what lasts from triples, and lets the model say what it replaces."""

    def __init__(self, settings: WorldMemorySettings, writer: ModelWriter, embed: Embed) -> None:
        self._settings, self._writer, self._embed = settings, writer, embed
        self._vectors: dict[str, Vectors] = {}

    def change(
        self,
        seen: Sequence[semantic.EpisodicTriple],
        valid: Sequence[semantic.SemanticTriple],
        span: TimeSpan,
        clip: int,
    ) -> semantic.SemanticChange:
        """Return what some minutes change.

        Args:
            seen: their triples, in order of time.
            valid: the triples that last and are not closed.
            clip: from which on the change is known.

        Raises:
            Unreadable: no reply says what lasts.
        """
        rests: dict[Triple, dict[int, None]] = {}
        for one in seen:
            rests.setdefault(one.triple, {})[one.clip] = None
        if not rests:
            return semantic.SemanticChange()
        shown = list(rests)
        now, closed, added = (
            list(valid),
            list[semantic.SemanticTriple](),
            list[semantic.SemanticTriple](),
        )
        lasting = self._writer.lasting(span, shown)
        if lasting:
            self._read([one.text for one in valid] + [triple.text for triple, _ in lasting])
        for triple, numbers in lasting:
            clips = dict.fromkeys(one for number in numbers for one in rests[shown[number]])
            new = semantic.SemanticTriple(triple=triple, evidence=tuple(clips), from_clip=clip)
            change = semantic.consolidate(new, self._near(new, now), self._decide, clip)
            (new,) = change.added
            # What began in this step and is replaced in it never was.
            gone = {one.triple for one in change.closed} | {new.triple}
            ended = gone - {one.triple for one in added}
            closed += [
                one.model_copy(update={"to_clip": clip}) for one in now if one.triple in ended
            ]
            added = [*(one for one in added if one.triple not in gone), new]
            now = [*(one for one in now if one.triple not in gone), new]
        return semantic.SemanticChange(closed=tuple(closed), added=tuple(added))

    def _near(
        self, new: semantic.SemanticTriple, valid: Sequence[semantic.SemanticTriple]
    ) -> tuple[semantic.SemanticTriple, ...]:
        """Return the triples that a new one may replace, most alike first."""
        if not valid:
            return ()
        texts = [one.text for one in valid]
        self._read([new.text, *texts])
        existing = np.stack([self._vectors[text] for text in texts])
        least, most = self._settings.consolidation_cosine, self._settings.consolidation_candidates
        numbers = semantic.candidates_for(self._vectors[new.text], existing, least, most)
        return tuple(valid[number] for number in numbers)

    def _read(self, texts: Iterable[str]) -> None:
        """Embed those of the texts that have no vector yet, all at once."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors |= zip(new, self._embed(new), strict=True)

    def _decide(self, new: Triple, existing: Sequence[Triple]) -> semantic.Consolidation:
        """Ask the model, else decide by rules; what reads the same is replaced in any case."""
        try:
            decision = self._writer.consolidation(new, existing)
        except Unreadable:
            note_rules(_LOG, "a triple was consolidated by rules: no reply could be read")
            numbers = [
                number
                for number, old in enumerate(existing)
                if semantic.says_same(new, old) or semantic.contradicts(new, old)
            ]
            decision = semantic.Consolidation(replaced=tuple(numbers), triple=new)
        same = [number for number, old in enumerate(existing) if old == decision.triple]
        replaced = tuple(dict.fromkeys((*decision.replaced, *same)))
        return decision.model_copy(update={"replaced": replaced})


class SemanticBuild:
    """Counts the triples of the finest scale, those that were built before first.

    Args:
        built: what was built before.
        level: of the finest scale.
        key_of: returns the key of the entity of a name.
        model: says what lasts; None: what recurs does.
    """

    def __init__(
        self,
        settings: WorldMemorySettings,
        built: BuiltMemory,
        level: str,
        key_of: Callable[[str], EntityKey],
        model: SemanticByModel | None = None,
    ) -> None:
        self._settings, self._level = settings, level
        self._key_of, self._model = key_of, model
        self._recurring = semantic.Recurrences(settings.semantic_window_ms)
        self._spans: dict[int, TimeSpan] = {}
        self._recurring.add(self._seen(built.relations))
        self._valid = [
            semantic.SemanticTriple(triple=_triple(r), evidence=r.evidence, from_clip=r.from_clip)
            for r in built.relations
            if r.level == SEMANTIC and r.to_clip is None
        ]

    def step(
        self, relations: Sequence[Relation], span: TimeSpan, clip: int
    ) -> tuple[list[Relation], list[Relation]]:
        """Return the semantic relations that the triples of a step begin and close.

        Args:
            relations: of the captions of the step.
            clip: from which on the change is known.
        """
        change = self._change(self._seen(relations), span, clip)
        gone = {(one.triple, one.from_clip) for one in change.closed}
        self._valid = [one for one in self._valid if (one.triple, one.from_clip) not in gone]
        self._valid += change.added
        added, closed = (
            [self._relation(one) for one in changed] for changed in (change.added, change.closed)
        )
        return added, closed

    def _change(
        self, seen: Sequence[semantic.EpisodicTriple], span: TimeSpan, clip: int
    ) -> semantic.SemanticChange:
        """Return what the model makes of triples; by rules without one, or without a reply."""
        again = self._recurring.add(seen)
        if self._model is not None:
            try:
                return self._model.change(seen, self._valid, span, clip)
            except Unreadable:
                note_rules(_LOG, "what lasts of %s is by rules: no reply could be read", span)
        lasting = list(self._recurring.lasting(again, self._settings.occasions))
        return semantic.consolidate_by_rules(lasting, self._valid, clip)

    def _seen(self, relations: Iterable[Relation]) -> list[semantic.EpisodicTriple]:
        """Return the triples that captions of the finest scale state, and note when they did."""
        stated = [r for r in relations if r.level == self._level and r.predicate != MENTIONED]
        self._spans |= {one.from_clip: one.span for one in stated}
        return [
            semantic.EpisodicTriple(triple=_triple(one), span=one.span, clip=one.from_clip)
            for one in stated
        ]

    def _relation(self, one: semantic.SemanticTriple) -> Relation:
        spans = [self._spans[clip] for clip in one.evidence if clip in self._spans]
        return Relation(
            level=SEMANTIC,
            subject=self._key_of(one.triple.subject),
            predicate=one.triple.predicate,
            object=self._key_of(one.triple.object),
            span=spans[-1] if spans else TimeSpan.of(0, 0),
            from_clip=one.from_clip,
            evidence=one.evidence,
            to_clip=one.to_clip,
        )


def _triple(one: Relation) -> Triple:
    return Triple(subject=one.subject.name, predicate=one.predicate, object=one.object.name)


# Keeps one frame of each segment of ten seconds: the sharpest of those about its middle.
#
# A segment that goes on in the next clip has its frame already, so that a question as of a moment
# sees the same frames later on.


MIDDLE_SHARE = 0.6
"""The part of a segment about its middle whose frames are preferred."""
SIDE, QUALITY = 768, 80
"""Pixels of a kept frame's longest side at most, and the quality of its JPEG."""
REASON = "the sharpest of ten seconds"


def segment_keeper(settings: WorldMemorySettings) -> FrameKeeper:
    length = settings.segment_ms

    def keep(
        _video: Video,
        carried: State,
        _encoder: ImageEncoder | None,
        _clip: Clip,
        frames: Iterator[tuple[int, Image]],
    ) -> KeptFrames:
        """Keep the best frame of each segment that has none; the earlier of two equal ones."""
        known = carried.get("segment")
        last = known if isinstance(known, int) else -1
        best: dict[int, tuple[bool, float, int]] = {}
        for time, image in frames:
            segment = time // length
            if segment > last:
                is_about_middle = abs(time % length - length / 2) <= MIDDLE_SHARE / 2 * length
                # The variance of the Laplacian of grey, as of eq. 2.
                grey = np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.uint8)
                found = (is_about_middle, variance(laplacian(grey)), time)
                if segment not in best or found[:2] > best[segment][:2]:
                    best[segment] = found
        kept = [FrameToKeep(time, REASON, 0, SIDE, QUALITY) for _, _, time in best.values()]
        return KeptFrames(kept, {"segment": max(best, default=last)})

    return FrameKeeper(version=1, every_ms=SECOND, keep=keep)
