"""What a language model replies when it writes MemDreamer's hierarchy; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from domain.built import EntityKey, Node
from domain.memories import Memory, MemoryKind, MemorySource, with_attribution
from domain.people import tags_in
from domain.time import TimeSpan
from domain.words import one_line
from strategies.memdreamer import levels
from strategies.memdreamer.subgraph import Numbers, Subgraph, graph_edge, in_turn, vertex_of
from strategies.policy_parts import made_up

LONGEST_NAME, LONGEST_TEXT = 120, 4_000
"""Most characters of a name or label, and of a text."""
MOST_ENTITIES, MOST_EVENTS, MOST_EDGES = 100, 100, 300
"""Most that is taken of one reply."""

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class WrittenEpisode(BaseModel):
    """An episode, by the numbers of its lines."""

    first: int
    last: int
    label: str
    summary: str


class WrittenEpisodes(BaseModel):
    """The complete episodes of a window, in order."""

    episodes: list[WrittenEpisode]

    def complaints(self, texts: Sequence[str], *, ended: bool) -> list[str]:
        """Return what the model is asked to put right, given the lines of the window."""
        ranges = [(one.first, one.last) for one in self.episodes]
        wrong = run_complaints(ranges, range(len(texts)), "lines", whole=ended)
        known = tags_in(texts)
        for one in self.episodes:
            wrong += text_complaints(one.label, LONGEST_NAME, "a label")
            wrong += text_complaints(one.summary, LONGEST_TEXT, "a summary")
            wrong += made_up([one.label, one.summary], known)
        return list(dict.fromkeys(wrong))


class EpisodeEntity(BaseModel):
    """A person, thing, place or group."""

    name: Name
    kind: Literal["PERSON", "OBJECT", "LOCATION", "GROUP"]
    description: str = ""
    best: int = 0  # The line at which it is seen best.


class EpisodeEvent(BaseModel):
    """What happens in some lines."""

    type: Name
    first: int
    last: int
    subject: str = ""
    object: str = ""
    description: Name


class EpisodeEdge(BaseModel):
    """An edge between entities, events and texts."""

    subject: Name
    label: Name
    object: Name


class WrittenGraph(BaseModel):
    """The graph of an episode."""

    entities: list[EpisodeEntity]
    events: list[EpisodeEvent]
    edges: list[EpisodeEdge]


class WrittenSuper(BaseModel):
    """A super event, by the numbers of its episodes."""

    first: int
    last: int
    label: str
    description: str


class WrittenReason(BaseModel):
    """An edge with its reason; the ends are numbers."""

    subject: int
    label: Name
    object: int
    reason: str

    @property
    def key(self) -> tuple[int, str, int]:
        return self.subject, self.label.upper(), self.object


class WrittenSupers(BaseModel):
    """Super events, and edges in and between them."""

    supers: list[WrittenSuper]
    inner: list[WrittenReason] = Field(default=[], description="between episodes of one")
    outer: list[WrittenReason] = Field(default=[], description="between super events")

    def complaints(
        self, numbers: Sequence[int], texts: Iterable[str], most: int, before: int | None
    ) -> list[str]:
        """Return what the model is asked to put right.

        Args:
            most: episodes of a super event.
            before: the number of the super event before, if there is one.
        """
        ranges = [(one.first, one.last) for one in self.supers]
        wrong = run_complaints(ranges, numbers, "episodes", whole=True)
        if any(last - first >= most for first, last in ranges):
            wrong.append(f"a super event has {most} episodes at most")
        known = tags_in(texts)
        for one in self.supers:
            wrong += text_complaints(one.label, LONGEST_NAME, "a label")
            wrong += text_complaints(one.description, LONGEST_TEXT, "a description")
            wrong += made_up([one.label, one.description], known)
        inner, outer = self.edges([(a, b) for a, b in ranges if a <= b], before)
        for edge in self.inner:
            if edge.key not in inner:
                wrong.append(f"inner: {edge.key} joins no episodes of one super event so")
        for edge in self.outer:
            if edge.key not in outer:
                wrong.append(f"outer: {edge.key} joins no super events so")
        return list(dict.fromkeys(wrong))

    def edges(
        self, ranges: Sequence[tuple[int, int]], before: int | None
    ) -> tuple[dict[tuple[int, str, int], str], dict[tuple[int, str, int], str]]:
        """Return the sound edges in super events of these ranges, and those between them."""
        firsts = {first for first, _ in ranges}
        inner = {
            edge.key: one_line(edge.reason)
            for edge in self.inner[:MOST_EDGES]
            if any(a <= edge.subject <= b and a <= edge.object <= b for a, b in ranges)
            and _joins(levels.MACRO, levels.MACRO_VERTEX, edge)
        }
        outer = {
            edge.key: one_line(edge.reason)
            for edge in self.outer[:MOST_EDGES]
            if edge.subject in firsts
            and edge.object in firsts | {before}
            and _joins(levels.SUPER, levels.SUPER_VERTEX, edge)
        }
        return inner, outer


class WrittenRoot(BaseModel):
    """What the whole video is about."""

    title: str
    description: str
    themes: list[str]
    tone: str = ""

    def complaints(self, texts: Iterable[str]) -> list[str]:
        """Return what the model is asked to put right, given the super events."""
        wrong = text_complaints(self.title, LONGEST_NAME, "the title")
        wrong += text_complaints(self.description, LONGEST_TEXT, "the description")
        written = [self.title, self.description, self.tone, *self.themes]
        return [*wrong, *made_up(written, texts)]


def _joins(level: str, vertex: str, edge: WrittenReason) -> bool:
    _, label, _ = edge.key
    reasoned = label != "BEFORE" and edge.subject != edge.object and bool(one_line(edge.reason))
    return reasoned and levels.is_allowed(level, vertex, label, vertex)


def run_complaints(
    ranges: Sequence[tuple[int, int]], numbers: Sequence[int], what: str, *, whole: bool
) -> list[str]:
    """Return what is wrong with runs of numbers that are to follow each other without gaps.

    Args:
        ranges: the first and last number of each run.
        numbers: those that there are, each one more than the one before.
        whole: whether the runs are to go on to the last number.
    """
    if not ranges:
        return ["there is none: there is at least one"]
    wrong = []
    expected = numbers[0]
    for first, last in ranges:
        if first != expected or last < first or last > numbers[-1]:
            wrong.append(
                f"{what} {first} to {last}: runs follow each other without gaps or overlaps, "
                f"from {numbers[0]} on, up to {numbers[-1]} at most; here {expected} is the first"
            )
        expected = last + 1
    if whole and not wrong and expected != numbers[-1] + 1:
        wrong.append(f"the last run ends with {numbers[-1]}")
    return wrong


def text_complaints(text: str, longest: int, what: str) -> list[str]:
    """Return what is wrong with a text: it is empty, or too long."""
    if not one_line(text):
        return [f"{what} is empty"]
    return [f"{what} is longer than {longest} characters"] if len(text) > longest else []


def short(text: str, words: int) -> str:
    return " ".join(text.split()[:words])[:LONGEST_NAME]


def line_text(line: Memory) -> str:
    """Return a line with who says it, or that it is on screen."""
    if line.source is MemorySource.READ and line.kind is MemoryKind.EPISODIC:
        return f"On screen: {line.text}"
    return with_attribution(line.text, line.source, line.speaker)


def shown_texts(lines: Sequence[Memory]) -> list[Memory]:
    return [
        line
        for line in lines
        if line.source is MemorySource.READ and line.kind is MemoryKind.EPISODIC
    ]


# Makes the graph of an episode of what a language model wrote, and says what is wrong with it.

_PLACE = re.compile(r"(?P<kind>[ET])(?P<number>\d{1,4})")
_KINDS = {"E": levels.EVENT_VERTEX, "T": levels.TEXT_VERTEX}


class GraphOfReply:
    """Reads replies about one episode.

    Args:
        lines: as the model was shown them.
    """

    def __init__(self, span: TimeSpan, lines: Sequence[Memory]) -> None:
        self._span, self._lines = span, lines
        self._texts = shown_texts(lines)
        self._tags = tags_in(line_text(line) for line in lines)

    def complaints(self, reply: WrittenGraph) -> list[str]:
        """Return what the model is asked to put right."""
        kinds = {one_line(one.name): one.kind for one in reply.entities}
        wrong = made_up(kinds, self._tags)
        for number, event in enumerate(reply.events):
            if not self._has(event):
                wrong.append(f"E{number}: lines {event.first} to {event.last} are none")
            for name in filter(None, map(one_line, (event.subject, event.object))):
                if name not in kinds:
                    wrong.append(f"E{number}: {name!r} is not among the entities")
        for edge in reply.edges:
            ends = []
            for end in map(one_line, (edge.subject, edge.object)):
                kind = kinds.get(end) or self._place_kind(end, len(reply.events))
                ends.append(kind)
                if not kind:
                    wrong.append(f"{end!r} is the end of an edge, but no entity, event or text")
            label = _label(edge)
            if label not in levels.GRAPH_ENDS or label == levels.MENTIONED:
                wrong.append(f"there is no label {edge.label!r}")
            elif all(ends) and not levels.is_allowed(levels.GRAPH, ends[0], label, ends[1]):
                wrong.append(f"{label} does not lead from {ends[0]} to {ends[1]}")
        return list(dict.fromkeys(wrong))

    def _place_kind(self, end: str, events: int) -> str:
        """Return whether ``E3`` or ``T0`` is an event or a text that there is; "" if neither."""
        match = _PLACE.fullmatch(end)
        if match is None:
            return ""
        most = events if match["kind"] == "E" else len(self._texts)
        return _KINDS[match["kind"]] if int(match["number"]) < most else ""

    def _has(self, event: EpisodeEvent) -> bool:
        return 0 <= event.first <= event.last < len(self._lines)

    def read(self, reply: WrittenGraph, numbers: Numbers, types: dict[str, str]) -> Subgraph:
        """Return the graph; an end of an edge that is not there stays, to be dropped later."""
        graph = Subgraph()
        names: dict[str, EntityKey] = {}
        for named in reply.entities[:MOST_ENTITIES]:
            name = one_line(named.name)[:LONGEST_NAME]
            if made_up([name, named.description], self._tags):
                continue
            names[name] = key = EntityKey(types.setdefault(name, named.kind), name)
            best = self._lines[min(max(named.best, 0), len(self._lines) - 1)].span.start_ms
            description = one_line(named.description)[:LONGEST_TEXT]
            graph.entities.setdefault(
                key, {"description": description, "best_ms": max(best, self._span.start_ms)}
            )
        texts = {}
        for place, line in enumerate(self._texts):
            node = Node(levels.TEXT, numbers.take(levels.TEXT), line.text, line.span, line.clip)
            graph.nodes.append(node)
            texts[f"T{place}"] = vertex_of(node)
        places = texts | self._add_events(graph, reply, names, numbers)
        for one in reply.edges[:MOST_EDGES]:
            subject, target = (
                names.get(end) or places.get(end) or EntityKey("", end)
                for end in map(one_line, (one.subject, one.object))
            )
            if _label(one) != levels.MENTIONED:
                # An edge rests on the clips of its events and texts, else on the first.
                ends = (subject, target)
                known = {node.from_clip for node in graph.nodes if vertex_of(node) in ends}
                clips = known or {self._lines[0].clip}
                graph.edges.append(graph_edge(subject, _label(one), target, self._span, clips))
        return graph

    def _add_events(
        self, graph: Subgraph, reply: WrittenGraph, names: dict[str, EntityKey], numbers: Numbers
    ) -> dict[str, EntityKey]:
        """Add micro-events with who does what; return their vertices by place."""
        places = {}
        made = []
        for place, event in enumerate(reply.events[:MOST_EVENTS]):
            if not self._has(event) or made_up([event.description], self._tags):
                continue
            first, last = self._lines[event.first], self._lines[event.last]
            node = Node(
                levels.EVENT,
                numbers.take(levels.EVENT),
                one_line(event.description)[:LONGEST_TEXT],
                TimeSpan.of(first.span.start_ms, max(first.span.end_ms, last.span.end_ms)),
                first.clip,
                one_line(event.type)[:LONGEST_NAME],
            )
            graph.nodes.append(node)
            made.append(node)
            places[f"E{place}"] = vertex = vertex_of(node)
            for name, label in ((event.subject, levels.PERFORMS), (event.object, levels.RECEIVES)):
                if end := names.get(one_line(name)):
                    graph.edges.append(graph_edge(end, label, vertex, node.span, (first.clip,)))
        made.sort(key=lambda node: (node.span.start_ms, node.number))
        graph.edges += in_turn(made)
        return places


def _label(edge: EpisodeEdge) -> str:
    return "_".join(edge.label.upper().split())
