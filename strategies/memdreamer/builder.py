"""Builds MemDreamer's memory of a video: macro events with their graphs, super events, the root.

It goes clip by clip, so that what it builds is the same in steps of any size. After each clip the
window is cut as far as its episodes are complete; each new macro event touches the last super
events and the root, and nothing else is built anew.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from agent.builder import BuildModels, MemoryBuilder
from domain.built import (
    BuiltMemory,
    Change,
    Entity,
    EntityKey,
    Node,
    Relation,
    WatchedClip,
    entity_text,
)
from domain.media import Video
from domain.memories import MemoryKind
from domain.people import TAG
from domain.time import TimeSpan
from strategies.memdreamer import writer
from strategies.memdreamer.hierarchy import Hierarchy, halved, merged
from strategies.memdreamer.levels import EVENT, MACRO, PERSON, TEXT
from strategies.memdreamer.model_writer import HierarchyByModel
from strategies.memdreamer.settings import MINUTE, HierarchySettings
from strategies.memdreamer.subgraph import Numbers, mentions, sound_part

_LOG = logging.getLogger(f"homer.{__name__}")


def hierarchy_builder(settings: HierarchySettings | None = None) -> MemoryBuilder:
    """Return what builds clip by clip, by rules or with a language model."""
    settings = settings or HierarchySettings()
    return MemoryBuilder(
        # 2: without a model, chapters of a minute or more, named by noun phrases.
        version=2,
        # A clip: a line that goes on in the next is not replaced yet when its own is built.
        step_ms=1,
        look_back_ms=2 * settings.window_ms + MINUTE,
        begin=partial(HierarchyBuild, settings),
    )


class HierarchyBuild:
    """One build: the open window, and the hierarchy so far.

    Args:
        video: its title is the root's.
        built: what was built before.
        earlier: the last clips that were built.
        models: the text encoder, and the language model if there is one.
    """

    def __init__(
        self,
        settings: HierarchySettings,
        video: Video,
        built: BuiltMemory,
        earlier: Sequence[WatchedClip],
        models: BuildModels,
    ) -> None:
        self._settings, self._embed = settings, models.embed
        rules = writer.RuleWriter(settings, models.sentences, models.embed, models.word)
        self._writer: writer.HierarchyWriter = (
            HierarchyByModel(models.model, settings, rules) if models.model else rules
        )
        macros = [node for node in built.nodes if node.level == MACRO]
        last_ms = max((node.span.end_ms for node in macros), default=None)
        self._window = writer.OpenWindow(last_ms, earlier)
        counts = {level: sum(n.level == level for n in built.nodes) for level in (EVENT, TEXT)}
        self._numbers = Numbers(counts)
        self._macros = len(macros)
        self._types = {
            entity.key.name: entity.key.type for entity in built.entities if entity.attributes
        }
        self._known = {entity.key for entity in built.entities}
        self._hierarchy = Hierarchy(settings, self._writer, video.title, built)

    def step(self, clips: Sequence[WatchedClip], *, ended: bool) -> Change:
        """Return what these clips complete, and what that changes above."""
        last = clips[-1].clip if clips else -1
        return merged(self._clip(one, ended=ended and one.clip == last) for one in clips)

    def _clip(self, clip: WatchedClip, *, ended: bool) -> Change:
        new: list[_Made] = []
        if self._window.pauses_before(clip):
            new += self._cut(self._window.span, clip.clip, ended=True)
        self._window.add(clip)
        while (span := self._window.span).length_ms >= self._settings.window_ms:
            whole = TimeSpan.of(span.start_ms, span.start_ms + self._settings.window_ms)
            new += self._cut(whole, clip.clip, ended=False)
        if ended:
            new += self._cut(self._window.span, clip.clip, ended=True)
        return self._change(new, clip.clip) if new else Change()

    def _cut(self, span: TimeSpan, clip: int, *, ended: bool) -> list[_Made]:
        """Return the macro events of a window, with their graphs; the next one begins after."""
        if not span.length_ms:
            return []
        lines = tuple(self._window.lines(span))
        told = tuple(line for line in lines if line.kind is MemoryKind.EPISODIC)
        vectors = self._embed([line.text for line in told]) if told else np.zeros((0, 1))
        window = writer.Window(span, lines, told, np.asarray(vectors, np.float32), ended)
        made = [self._made(episode, clip) for episode in self._writer.episodes(window)]
        self._window.begin_at(made[-1].macro.span.end_ms)
        return made

    def _made(self, episode: writer.Episode, clip: int) -> _Made:
        """Return a macro event with the sound part of its graph."""
        number = self._macros
        self._macros += 1
        people = sorted(
            name for name, kind in self._types.items() if kind == PERSON and not TAG.fullmatch(name)
        )
        graph = self._writer.graph(episode, self._numbers, self._types, people)
        graph, dropped = sound_part(graph, episode.span)
        for what in dropped:
            _LOG.warning("dropped from the graph of %s: %s", episode.span, what)
        edges = [*graph.edges, *mentions(graph, episode.span, clip)]
        return _Made(
            Node(MACRO, number, episode.summary, episode.span, clip, episode.label),
            [replace(node, from_clip=clip) for node in graph.nodes],
            graph.entities,
            [replace(edge, from_clip=clip, node=(MACRO, number)) for edge in edges],
        )

    def _change(self, new: Sequence[_Made], clip: int) -> Change:
        """Return the rows of new macro events, and of what they change above."""
        texts = [text for made in new for text in made.texts()]
        vectors = dict(zip(texts, halved(self._embed, texts), strict=True))
        macros = [replace(made.macro, vector=vectors[made.text]) for made in new]
        nodes = list[Node]()
        for macro, made in zip(macros, new, strict=True):
            nodes += [macro, *(replace(one, vector=vectors[one.text]) for one in made.nodes)]
        entities = [one for made in new for one in self._entities(made, clip, vectors)]
        above = self._hierarchy.grown(macros, clip, self._embed)
        # Vertices of macro and super events that edges join for the first time.
        ends = dict.fromkeys(end for edge in above.relations for end in (edge.subject, edge.object))
        vertices = [Entity(key, clip) for key in ends if key not in self._known]
        self._known |= ends.keys()
        return Change(
            nodes=[*nodes, *above.nodes],
            entities=[*entities, *vertices],
            relations=[*(edge for made in new for edge in made.edges), *above.relations],
            closed=above.closed,
            closed_nodes=above.closed_nodes,
        )

    def _entities(
        self, made: _Made, clip: int, vectors: dict[str, writer.Vector]
    ) -> Iterator[Entity]:
        """Yield entities and vertices of a macro event that the video did not have before."""
        for key, attributes in made.entities.items():
            if key not in self._known:
                self._known.add(key)
                text = entity_text(key, attributes)
                yield Entity(key, clip, attributes, vectors[text])
        ends = [end for edge in made.edges for end in (edge.subject, edge.object)]
        for key in dict.fromkeys(ends):
            if key not in self._known:
                self._known.add(key)
                yield Entity(key, clip)


@dataclass(frozen=True)
class _Made:
    """A macro event that was made, with its graph: nodes, entities with attributes, edges."""

    macro: Node
    nodes: Sequence[Node]
    entities: Mapping[EntityKey, dict[str, Any]]
    edges: Sequence[Relation]

    @property
    def text(self) -> str:
        """The macro event in words, as it is embedded."""
        return f"{self.macro.label}: {self.macro.text}"

    def texts(self) -> Iterator[str]:
        yield self.text
        yield from (node.text for node in self.nodes)
        yield from (entity_text(key, known) for key, known in self.entities.items())
