"""Builds WorldMM's memory of a video: captions at four scales, their entities and triples."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from agent.builder import BuildModels, MemoryBuilder, note_rules
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
from domain.sentences import EntityKind, StatedFacts
from domain.time import TimeSpan
from retrieval.chapters import BREAK, DocumentCounts, coarser_caption
from retrieval.english import Known, is_narrated
from strategies.worldmm import captions
from strategies.worldmm.model_writer import ModelWriter
from strategies.worldmm.semantic_build import SemanticBuild, SemanticByModel
from strategies.worldmm.settings import WorldMemorySettings

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
