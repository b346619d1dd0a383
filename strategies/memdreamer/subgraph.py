"""The graph of a macro event: what it has, and whether it is sound; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from typing import Any

from domain.built import EntityKey, Node, Relation, RelationKey
from domain.memories import Memory, MemoryKind, MemorySource, with_attribution
from domain.people import TAG
from domain.sentences import EntityKind, NamedEntity, StatedFacts, things_on
from domain.time import TimeSpan
from models.sentences import SentenceParser
from retrieval.english import Known, is_narrated, stated_facts
from strategies.memdreamer import levels


def vertex_of(node: Node) -> EntityKey:
    return EntityKey(levels.VERTEX_KINDS[node.level], str(node.number))


def graph_edge(
    subject: EntityKey, label: str, target: EntityKey, span: TimeSpan, clips: Iterable[int]
) -> Relation:
    """Return an edge with when it holds, and the clips that it rests on."""
    rests = tuple(sorted(set(clips)))
    return Relation(levels.GRAPH, subject, label, target, span, rests[0], rests)


def in_turn(events: Sequence[Node]) -> Iterator[Relation]:
    """Yield an edge from each event to the next of events in order of time."""
    for one, other in pairwise(events):
        label = levels.OVERLAP if one.span.overlap_ms(other.span) else levels.BEFORE
        clips = (one.from_clip, other.from_clip)
        yield graph_edge(vertex_of(one), label, vertex_of(other), one.span.union(other.span), clips)


@dataclass
class Subgraph:
    """The graph of a macro event, in order of time; entities with their attributes.

    Nodes are micro-events, labelled by type, and texts on screen. They and the edges hold from the
    first of their own clips on, until it is known after which clip they are built.
    """

    nodes: list[Node] = field(default_factory=list)
    entities: dict[EntityKey, dict[str, Any]] = field(default_factory=dict)
    edges: list[Relation] = field(default_factory=list)

    def of_level(self, level: str) -> list[Node]:
        return [node for node in self.nodes if node.level == level]


@dataclass
class Numbers:
    """The numbers of the next micro-event and of the next text; they run over the video."""

    next: dict[str, int] = field(default_factory=lambda: {levels.EVENT: 0, levels.TEXT: 0})

    def take(self, level: str) -> int:
        number = self.next[level]
        self.next[level] = number + 1
        return number


def sound_part(graph: Subgraph, span: TimeSpan) -> tuple[Subgraph, tuple[str, ...]]:
    """Return what of a graph is sound, and in words what is not.

    Spans are cut to that of the macro event, and what lies outside of it is dropped; so are
    entities of no kind, and edges whose ends are not there or whose label is not for them.

    Args:
        span: of the macro event.
    """
    wrong: list[str] = []
    nodes = []
    for node in graph.nodes:
        within = _within(node.span, span)
        if within is None:
            wrong.append(f"{node.level} {node.text!r} at {node.span} is outside of {span}")
        else:
            nodes.append(replace(node, span=within))
    entities = {
        key: value
        for key, value in graph.entities.items()
        if (key.type in levels.ENTITY_KINDS and bool(key.name.strip()))
    }
    wrong += [f"{key.name!r} is of no kind: {key.type}" for key in graph.entities.keys() - entities]
    known = {*entities, *map(vertex_of, nodes)}
    edges = []
    # Edges that say the same become one, with the span of them all.
    found: dict[RelationKey, Relation] = {}
    for one in graph.edges:
        if same := found.get(one.key):
            clips = tuple(sorted({*same.evidence, *one.evidence}))
            one = replace(one, evidence=clips, span=same.span.union(one.span))
        found[one.key] = one
    for one in found.values():
        complaint = _complaint(one, known)
        within = _within(one.span, span)
        if complaint or within is None:
            wrong.append(complaint or f"{one.text!r} is outside of {span}")
        else:
            edges.append(one if within is one.span else replace(one, span=within))
    return Subgraph(nodes, entities, edges), tuple(wrong)


def _within(inner: TimeSpan, outer: TimeSpan) -> TimeSpan | None:
    """Return the part of a span in another; None if it is outside."""
    if outer.contains(inner) and inner.start_ms < outer.end_ms:
        return inner
    start, end = max(inner.start_ms, outer.start_ms), min(inner.end_ms, outer.end_ms)
    return TimeSpan.of(start, end) if start <= end and start < outer.end_ms else None


def _complaint(one: Relation, known: set[EntityKey]) -> str:
    """Return what is wrong with an edge, or ""."""
    for end in (one.subject, one.object):
        if end not in known:
            return f"{one.text!r}: there is no {end.type} {end.name!r}"
    if not levels.is_allowed(levels.GRAPH, one.subject.type, one.predicate, one.object.type):
        kinds = f"{one.subject.type} to {one.object.type}"
        return f"{one.text!r}: {one.predicate} does not lead from {kinds}"
    if one.subject == one.object and one.predicate != levels.MENTIONED:
        return f"{one.text!r} leads to itself"
    return ""


def mentions(graph: Subgraph, span: TimeSpan, clip: int) -> Iterator[Relation]:
    """Yield an edge to itself for each entity that has no other."""
    joined = {end for one in graph.edges for end in (one.subject, one.object)}
    for key in graph.entities:
        if key not in joined:
            yield graph_edge(key, levels.MENTIONED, key, span, (clip,))


def degrees(graph: Subgraph) -> Mapping[EntityKey, int]:
    """Return in how many edges each entity is."""
    counts = dict.fromkeys(graph.entities, 0)
    for one in graph.edges:
        for end in {one.subject, one.object} & counts.keys():
            counts[end] += one.predicate != levels.MENTIONED
    return counts


# The graph of a macro event by rules, from the lines remembered of it.
#
# Nothing is inferred: entities are who and what perception and captions name, and what speech names
# more than once; micro-events are what was said, and the verbs of descriptions.

SAY, DESCRIBE, SOUND = "say", "describe", "sound"
"""Types of micro-events besides the verbs of descriptions."""
LEAST_NAMED = 2
"""A thing is an entity of speech from so many lines on that name it."""
MOST_TOGETHER = 6
"""Most people in view whose pairs are next to each other; more are a crowd."""
LEAST_LETTERS = 4
"""Letters of a name that is looked for in texts on screen."""

_SPOKEN = frozenset({MemorySource.SAID, MemorySource.SUBTITLE})
_DESCRIBED = frozenset({MemorySource.CAPTION, MemorySource.MODEL})
_NAMED = re.compile(rf"(?P<tag>{TAG.pattern}) is named (?P<name>[^,(]+)")
_WORD = re.compile(r"\w+")
_NOT_ENTITIES = frozenset({"we", "us", "others", "people", "everyone", "everybody", "person"})
_IN = frozenset({"in", "on", "at", "inside", "under", "behind", "on top of", "in front of"})
_BESIDE = frozenset({"next to", "near", "beside", "by", "alongside"})
_TO = frozenset({"to", "at", "for"})
_PREPOSITION = re.compile(
    r"(.+) (in front of|on top of|next to|out of|about|above|across|after|against|along|among"
    r"|around|at|before|behind|below|beneath|beside|between|by|during|for|from|in|inside|into|near|of"
    r"|on|onto|opposite|outside|over|past|through|throughout|to|towards?|under|until|upon|via"
    r"|with|within|without)"
)
_UNCERTAIN = re.compile(r"(?:not|can|could|may|might|must|shall|should|will|would)\b")
"""What a predicate begins with of which it is denied, or only possible, that it takes place."""


class RuleGraph:
    """Reads the graph of one macro event.

    Args:
        span: of the macro event.
        numbers: of the next nodes.
        types: the kind of each entity of the video by name; those that are new are added.
        people: names of the people known by then.
    """

    def __init__(
        self,
        parser: SentenceParser,
        span: TimeSpan,
        numbers: Numbers,
        types: dict[str, str],
        people: Sequence[str],
    ) -> None:
        self._span, self._numbers, self._types = span, numbers, types
        self._parser, self._people = parser, tuple(people)
        self._graph = Subgraph()
        self._named: Counter[str] = Counter()

    def read(self, lines: Sequence[Memory]) -> Subgraph:
        """Return the graph of lines, which are in order of time."""
        described = [line.text for line in lines if line.source in _DESCRIBED]
        speakers = (line.speaker for line in lines if line.speaker)
        people = tuple(dict.fromkeys((*self._people, *speakers)))
        known = Known(people=people, narrated=bool(described) and is_narrated(described))
        stating = [
            line
            for line in lines
            if line.kind is MemoryKind.EPISODIC and line.source in _SPOKEN | _DESCRIBED
        ]
        texts = [with_attribution(line.text, line.source, line.speaker) for line in stating]
        found = stated_facts(self._parser, texts, known)
        facts = {line.id: one for line, one in zip(stating, found, strict=True)}
        self._named = Counter(
            entity.name
            for line in lines
            if line.source in _SPOKEN and line.id in facts
            for entity in facts[line.id].entities
        )
        for line in lines:
            self._read_line(line, facts.get(line.id, StatedFacts()))
        self._graph.edges += in_turn(self._graph.of_level(levels.EVENT))
        names = {
            key: _spaced(key.name)
            for key in self._graph.entities
            if len(key.name) >= LEAST_LETTERS and (not TAG.fullmatch(key.name))
        }
        for text in self._graph.of_level(levels.TEXT):
            shown = _spaced(text.text)
            for key, name in names.items():
                if name in shown:
                    clips = (text.from_clip,)
                    self._graph.edges.append(
                        graph_edge(vertex_of(text), levels.ANNOTATES, key, text.span, clips)
                    )
        return self._graph

    def _read_line(self, line: Memory, facts: StatedFacts) -> None:
        if line.kind is MemoryKind.CHARACTER:
            # Join a tag to the name that is said or shown of it.
            match = _NAMED.match(line.text)
            if match:
                tag, name = (self._person(part, line) for part in (match["tag"], match["name"]))
                self._edge(tag, levels.IS_SAME_AS, name, line)
        if line.kind is not MemoryKind.EPISODIC:
            return
        if line.source in _SPOKEN:
            self._said(line, facts)
        elif line.source in _DESCRIBED:
            self._described(line, facts)
        elif line.source is MemorySource.READ:
            self._node(levels.TEXT, "", line.text, line)
        elif line.source is MemorySource.SEEN:
            # People that are in view together are next to each other.
            people = [self._person(tag, line) for tag in dict.fromkeys(line.tags)]
            if len(people) <= MOST_TOGETHER:
                for one, other in combinations(people, 2):
                    self._edge(one, levels.NEXT_TO, other, line)
        elif line.source is MemorySource.OBJECTS:
            for label in sorted(things_on(line.text).keys() - _NOT_ENTITIES):
                self._vertex(label, levels.OBJECT, line)
        elif line.source is MemorySource.SOUND:
            self._node(levels.EVENT, SOUND, line.text, line)

    def _said(self, line: Memory, facts: StatedFacts) -> None:
        text = with_attribution(line.text, line.source, line.speaker)
        event = self._node(levels.EVENT, SAY, text, line)
        if line.speaker:
            self._edge(self._person(line.speaker, line), levels.PERFORMS, event, line)
        for entity in facts.entities:
            told = self._named[entity.name] >= LEAST_NAMED or entity.kind is EntityKind.PERSON
            key = self._entity(entity, line) if told and entity.name != "I" else None
            if key is not None and entity.name != line.speaker:
                self._edge(key, levels.CONTEXT_FOR, event, line)

    def _described(self, line: Memory, facts: StatedFacts) -> None:
        """Read who does what with what, to whom and where."""
        keys = {
            one.name: key for one in facts.entities if (key := self._entity(one, line)) is not None
        }
        joined: set[EntityKey] = set()
        events: dict[tuple[str, str], EntityKey] = {}
        for triple in facts.triples:
            subject, target = keys.get(triple.subject), keys.get(triple.object)
            match = _PREPOSITION.fullmatch(triple.predicate)
            base, preposition = (match[1], match[2]) if match else (triple.predicate, "")
            if base == "be":  # Where something is.
                label = levels.LOCATED_IN if preposition in _IN else levels.NEXT_TO
                placed = preposition in _IN or preposition in _BESIDE
                if placed and subject is not None and target is not None and subject != target:
                    self._edge(subject, label, target, line)
                    joined |= {subject, target}
            elif subject is not None and (_UNCERTAIN.match(base) is None):
                event = events.get((triple.subject, base))
                if event is None:
                    event = self._node(levels.EVENT, base, line.text, line)
                    events[triple.subject, base] = event
                    self._edge(subject, levels.PERFORMS, event, line)
                joined.add(subject)
                if target is not None:
                    self._role(event, preposition, target, line)
                    joined.add(target)
        first = next(iter(events.values()), None) or self._node(
            levels.EVENT, DESCRIBE, line.text, line
        )
        for key in keys.values():
            if key not in joined:
                self._edge(key, levels.CONTEXT_FOR, first, line)

    def _role(self, event: EntityKey, preposition: str, target: EntityKey, line: Memory) -> None:
        """Join what a verb is about to the event, by its preposition."""
        if not preposition or (preposition in _TO and target.type in (levels.PERSON, levels.GROUP)):
            self._edge(target, levels.RECEIVES, event, line)
        elif preposition == "with" and target.type == levels.OBJECT:
            self._edge(target, levels.USES_TOOL, event, line)
        elif target.type == levels.LOCATION:
            self._edge(event, levels.HAPPENS_IN, target, line)
        else:
            self._edge(target, levels.CONTEXT_FOR, event, line)

    def _entity(self, named: NamedEntity, line: Memory) -> EntityKey | None:
        """Return the vertex of what a line names; None if it is no person, thing or place."""
        if named.name.casefold() in _NOT_ENTITIES:
            return None
        kind = str(named.kind)
        if kind not in levels.ENTITY_KINDS:
            kind = "" if named.quality else levels.OBJECT
        return self._vertex(named.name, kind, line) if kind else None

    def _person(self, name: str, line: Memory) -> EntityKey:
        return self._vertex(name.strip(), levels.PERSON, line)

    def _vertex(self, name: str, kind: str, line: Memory) -> EntityKey:
        key = EntityKey(self._types.setdefault(name, kind), name)
        if key not in self._graph.entities:
            self._graph.entities[key] = {
                "description": with_attribution(line.text, line.source, line.speaker),
                "best_ms": max(line.span.start_ms, self._span.start_ms),
            }
        return key

    def _node(self, level: str, label: str, text: str, line: Memory) -> EntityKey:
        number = self._numbers.take(level)
        node = Node(level, number, text, self._within(line.span), line.clip, label)
        self._graph.nodes.append(node)
        return vertex_of(node)

    def _edge(self, subject: EntityKey, label: str, target: EntityKey, line: Memory) -> None:
        if subject != target:
            span = self._within(line.span)
            self._graph.edges.append(graph_edge(subject, label, target, span, (line.clip,)))

    def _within(self, span: TimeSpan) -> TimeSpan:
        if self._span.contains(span):
            return span
        start = min(max(span.start_ms, self._span.start_ms), self._span.end_ms)
        return TimeSpan.of(start, max(start, min(span.end_ms, self._span.end_ms)))


def _spaced(text: str) -> str:
    """Return the words of a text in lower case, a space before and after each."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "
