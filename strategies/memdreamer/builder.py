"""Builds MemDreamer's memory of a video: macro events with their graphs, super events, the root.

It goes clip by clip, so that what it builds is the same in steps of any size. After each clip the
window is cut as far as its episodes are complete; each new macro event touches the last super
events and the root, and nothing else is built anew.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from agent.builder import BuildModels, Embed, MemoryBuilder
from domain.built import (
    BuiltMemory,
    Change,
    ClosedNode,
    Entity,
    EntityKey,
    Node,
    Relation,
    RelationKey,
    WatchedClip,
    entity_text,
)
from domain.media import Video
from domain.memories import MemoryKind
from domain.people import TAG
from domain.time import TimeSpan
from strategies.memdreamer import writer
from strategies.memdreamer.levels import (
    BEFORE,
    EVENT,
    MACRO,
    PERSON,
    ROOT,
    SUPER,
    TEXT,
    VERTEX_KINDS,
)
from strategies.memdreamer.model_writer import HierarchyByModel
from strategies.memdreamer.settings import MINUTE, HierarchySettings
from strategies.memdreamer.subgraph import Numbers, mentions, sound_part
from strategies.memdreamer.writer import (
    TOUCHED,
    HierarchyWriter,
    SuperEvent,
    SuperWindow,
    agglomerate,
    closest_pair,
    direction,
    run_sizes,
)

if TYPE_CHECKING:
    from domain.built import Vector


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


# Super events and the root, which grow above macro events.


# Vectors of texts with the precision that they are stored in.


def halved(embed: Embed, texts: Sequence[str]) -> list[Vector]:
    """Return the unit vector of each text, (D,), in half precision as in the store.

    So a build that is resumed compares the same numbers as one that goes on.
    """
    found = embed(texts) if texts else ()
    return [np.asarray(row, dtype=np.float16).astype(np.float32) for row in found]


# Joins the changes of clips to that of a step, as if each had been stored by itself; pure.


def merged(parts: Iterable[Change]) -> Change:
    """Return the change that the changes of clips make together; they are in order of time."""
    nodes, entities, relations = list[Node](), list[Entity](), list[Relation]()
    closed, closed_nodes = list[Relation](), list[ClosedNode]()
    # Where those stand that are open, by what names them.
    open_nodes: dict[tuple[str, int], int] = {}
    open_relations: dict[RelationKey, list[int]] = {}

    def close_node(level: str, number: int, clip: int) -> bool:
        """Close a node of this step that is open, and check whether there is one."""
        place = open_nodes.pop((level, number), None)
        if place is not None:
            nodes[place] = replace(nodes[place], to_clip=clip)
        return place is not None

    for part in parts:
        for gone in part.closed_nodes:
            if not close_node(gone.level, gone.number, gone.clip):
                closed_nodes.append(gone)
        for node in part.nodes:
            close_node(node.level, node.number, node.from_clip)
            open_nodes[node.level, node.number] = len(nodes)
            nodes.append(node)
        entities += part.entities
        for ended in part.closed:
            places = open_relations.pop(ended.key, [])
            for place in places:
                relations[place] = replace(relations[place], to_clip=ended.to_clip)
            if not places:
                closed.append(ended)
        for relation in part.relations:
            open_relations.setdefault(relation.key, []).append(len(relations))
            relations.append(relation)
    return Change(nodes, entities, relations, closed, closed_nodes)


# The super events and the root above the macro events of a video, as macro events come in.

_INNER = re.compile(r"macro (\d+) ([A-Z_]+) macro (\d+): (.*)")
_OUTER = re.compile(r"([A-Z_]+) super (\d+): (.*)")


def super_text(one: SuperEvent) -> str:
    """Return the text of a super event as it is stored: its description, then its edges."""
    inner = [f"macro {a} {label} macro {b}: {why}" for (a, label, b), why in one.inner.items()]
    outer = [f"{label} super {b}: {why}" for (_, label, b), why in one.outer.items()]
    return "\n".join([one.text, *inner, *outer])


def stored_super(node: Node) -> SuperEvent:
    description, *lines = node.text.split("\n")
    inner = [match.groups() for line in lines if (match := _INNER.fullmatch(line))]
    outer = [match.groups() for line in lines if (match := _OUTER.fullmatch(line))]
    return SuperEvent(
        run=node.children,
        label=node.label,
        text=description,
        inner={(int(a), label, int(b)): why for a, label, b, why in inner},
        outer={(node.number, label, int(b)): why for label, b, why in outer},
    )


class Hierarchy:
    """The super events of a video. A super event has the number of its first macro event.

    Args:
        writer: writes super events and the root.
        built: what was built before.
    """

    def __init__(
        self, settings: HierarchySettings, writer: HierarchyWriter, title: str, built: BuiltMemory
    ) -> None:
        self._settings, self._writer, self._title = settings, writer, title
        self._macros = {n.number: n for n in built.nodes if n.level == MACRO}
        valid = [n for n in built.nodes if n.level == SUPER and n.to_clip is None]
        valid.sort(key=lambda node: node.number)
        self._supers = [stored_super(node) for node in valid]
        self._edges: dict[RelationKey, Relation] = {
            one.key: one
            for one in built.relations
            if one.level in (MACRO, SUPER) and one.to_clip is None
        }

    def grown(self, macros: Sequence[Node], clip: int, embed: Embed) -> Change:
        """Return what new macro events change above them.

        Args:
            macros: that a clip completed, in order; there is at least one.
            clip: after which the change holds.
        """
        self._macros |= {macro.number: macro for macro in macros}
        before = {one.run[0]: one for one in self._supers}
        # Drop edges to super events that are no more.
        supers = self._touched(macros)
        last = macros[-1]
        most = run_sizes(self._settings, len(self._macros), last.span.end_ms)[1]
        vectors = {number: direction(macro) for number, macro in self._macros.items()}
        while last.span.end_ms >= self._settings.long_video_ms:
            if len(supers) <= self._settings.long_supers[1]:
                break
            at = closest_pair([one.run for one in supers[:-TOUCHED]], vectors, most)
            if at is None:
                break
            run = supers[at].run + supers[at + 1].run
            joined = self._writer.joined(supers[at : at + 2], [self._macros[n] for n in run])
            supers[at : at + 2] = [joined]
        numbers = {one.run[0] for one in supers}
        self._supers = [
            replace(one, outer={key: why for key, why in one.outer.items() if key[2] in numbers})
            for one in supers
        ]
        changed = [one for one in self._supers if one != before.get(one.run[0])]
        gone = before.keys() - {one.run[0] for one in self._supers}
        nodes = [
            Node(
                SUPER,
                one.run[0],
                super_text(one),
                self._span(one),
                clip,
                label=one.label,
                children=one.run,
            )
            for one in changed
        ]
        seen_ms = macros[-1].span.end_ms
        span = TimeSpan.of(self._macros[0].span.start_ms, seen_ms)
        root = self._writer.root(self._title, self._supers)
        children = tuple(one.run[0] for one in self._supers)
        nodes.append(Node(ROOT, 0, root.text, span, clip, label=root.title, children=children))
        held, self._edges = self._edges, {one.key: one for one in self._stated(clip)}
        lasting = {
            key for key, one in self._edges.items() if key in held and held[key].span == one.span
        }
        texts = [f"{node.label}: {node.text.splitlines()[0]}" for node in nodes]
        embedded = halved(embed, texts)
        return Change(
            nodes=[
                replace(node, vector=vector) for node, vector in zip(nodes, embedded, strict=True)
            ],
            relations=[one for key, one in self._edges.items() if key not in lasting],
            closed=[replace(one, to_clip=clip) for key, one in held.items() if key not in lasting],
            closed_nodes=[ClosedNode(SUPER, number, clip) for number in sorted(gone)],
        )

    def _touched(self, macros: Sequence[Node]) -> list[SuperEvent]:
        kept, touched = self._supers[:-TOUCHED], self._supers[-TOUCHED:]
        numbers = [number for one in touched for number in one.run]
        numbers += [macro.number for macro in macros]
        sizes = run_sizes(self._settings, len(self._macros), macros[-1].span.end_ms)
        vectors = {number: direction(self._macros[number]) for number in numbers}
        window = SuperWindow(
            before=kept[-1] if kept else None,
            touched=touched,
            macros=[self._macros[number] for number in numbers],
            runs=agglomerate(numbers, vectors, sizes),
            sizes=sizes,
        )
        return [*kept, *self._writer.supers(window)]

    def _span(self, one: SuperEvent) -> TimeSpan:
        return self._macros[one.run[0]].span.union(self._macros[one.run[-1]].span)

    def _stated(self, clip: int) -> Iterator[Relation]:
        """Yield all edges that hold between super events, and between macro events of one."""
        numbered = {one.run[0]: one for one in self._supers}
        for one, after in pairwise(self._supers):
            yield self._super_edge(one, BEFORE, after, clip)
        for one in self._supers:
            for _, label, other in one.outer:
                yield self._super_edge(one, label, numbered[other], clip)
            for subject, label, target in one.inner:
                a, b = self._macros[subject], self._macros[target]
                yield _edge(MACRO, a.number, label, b.number, a.span.union(b.span), one, clip)

    def _super_edge(self, one: SuperEvent, label: str, other: SuperEvent, clip: int) -> Relation:
        span = self._span(one).union(self._span(other))
        return _edge(SUPER, one.run[0], label, other.run[0], span, one, clip)


def _edge(
    level: str, subject: int, label: str, target: int, span: TimeSpan, by: SuperEvent, clip: int
) -> Relation:
    kind = VERTEX_KINDS[level]
    return Relation(
        level=level,
        subject=EntityKey(kind, str(subject)),
        predicate=label,
        object=EntityKey(kind, str(target)),
        span=span,
        from_clip=clip,
        evidence=(clip,),
        node=(SUPER, by.run[0]),
    )
