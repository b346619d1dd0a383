"""How nodes, entities and edges are shown: the first line says what it is, the others its refs.

The policy reads refs back from the lines that code wrote: what a video or a model says is put on
one line, which begins with other words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from domain.asking import Evidence
from retrieval.people_in_query import with_current_names
from strategies.memdreamer.hierarchy_view import ENTITY, HierarchyView, Vertex, VertexEdge
from strategies.memdreamer.levels import EVENT, MACRO, ROOT, SUPER, TEXT
from strategies.memdreamer.settings import HierarchySettings

KINDS = {
    ROOT: "whole video",
    SUPER: "super event",
    MACRO: "macro event",
    EVENT: "event",
    TEXT: "screen text",
}
"""What a node of a level is called."""
WITHIN, INSIDE, KEY = "In macro event", "Macro events", "Key entities"
"""What lines of refs begin with."""
SHORT, MOST_LISTED = 60, 8
"""Characters of the other end of an edge; refs of a line, at most."""

_WITHIN = re.compile(rf"^{WITHIN}s? (.*)$", re.M)
_INSIDE = re.compile(rf"^{INSIDE}: (.*)$", re.M)
_MACRO = re.compile(rf"{KINDS[MACRO]}\b")
_NODE = re.compile(r"\bn\d+\b")
_NOTE = re.compile(r"(?:(?:macro \d+ )?[A-Z_]+ (?:super|macro) \d+|Themes|Tone):")
_NUMBERED = re.compile(r"\b(super|macro) (\d+)\b")


class Showing:
    """Shows what is known of a video.

    Args:
        names: people's current names by tag.
        graph: whether entities and edges are shown.
        hierarchy: whether macro events are shown with their summaries.
    """

    def __init__(
        self, view: HierarchyView, names: Mapping[str, str], *, graph: bool, hierarchy: bool
    ) -> None:
        self._view, self._names = view, names
        self._graph, self._hierarchy = graph, hierarchy

    def plain(self, vertex: Vertex) -> str:
        """Return what a vertex says, without its refs."""
        _, _, said = self._head(vertex).partition(": ")
        return said

    def short(self, vertex: Vertex) -> str:
        """Return the first line of a vertex and its macro events, as a list of them shows it."""
        return "\n".join([self._head(vertex), *self._within(vertex)])

    def brief(self, vertex: Vertex) -> str:
        """Return a super event with the refs of its macro events, or a macro event."""
        return "\n".join([self._head(vertex), *self._parts(vertex)])

    def whole(self, vertex: Vertex) -> str:
        """Return a vertex with its place in the hierarchy and all edges, each with its end."""
        edges = self._view.edges_of[vertex.ref]
        lines = [self._head(vertex), *self._parts(vertex), *self._within(vertex)]
        # The edges that have a reason, themes and tone, with refs for numbers.
        for line in _split(vertex.text)[1]:
            head, colon, reason = line.partition(":")
            lines.append(self._line(f"{_NUMBERED.sub(self._numbered, head)}{colon}{reason}"))
        # Edges by label and way, each with its other end.
        ends: dict[str, list[str]] = {}
        for edge in edges if self._graph else ():
            head = f"{edge.label} ->" if edge.subject == vertex.ref else f"{edge.label} <-"
            ends.setdefault(head, []).append(self._end(edge.other(vertex.ref)))
        lines += (
            f"{head} {_listed([*dict.fromkeys(others)], '; ')}" for head, others in ends.items()
        )
        return "\n".join(lines)

    def in_graph(self, vertex: Vertex, macro: str) -> str:
        """Return a vertex of a local graph with the edges that lead from it, by their refs."""
        ends: dict[str, list[str]] = {}
        for edge in self._view.edges_of[vertex.ref] if self._graph else ():
            if edge.subject == vertex.ref and edge.macro == macro:
                ends.setdefault(edge.label, []).append(edge.object)
        leading = "; ".join(f"{label} {', '.join(refs)}" for label, refs in ends.items())
        return "\n".join([self._head(vertex), *([leading] if ends else [])])

    def edge(self, edge: VertexEdge) -> str:
        """Return an edge with both of its ends."""
        return f"{self._end(edge.subject)} {edge.label} {self._end(edge.object)}"

    def _head(self, vertex: Vertex) -> str:
        prose, _ = _split(vertex.text)
        if vertex.level == MACRO and not self._hierarchy:
            prose = ""
        kind = KINDS.get(vertex.level, vertex.kind)
        named = ": ".join(self._line(part) for part in (vertex.label, prose) if part.strip())
        return f"{kind}: {named}" if named else kind

    def _parts(self, vertex: Vertex) -> Iterator[str]:
        children = self._view.children[vertex.ref] if vertex.level == SUPER else []
        if children and self._hierarchy:
            yield f"{INSIDE}: {', '.join(child.ref for child in children)}"
        if vertex.level == MACRO and self._graph:
            key = self._view.entities_of[vertex.ref][: HierarchySettings().key_entities]
            if key:
                yield f"{KEY}: {', '.join(self._end(one.ref) for one in key)}"

    def _within(self, vertex: Vertex) -> Iterator[str]:
        if vertex.macros:
            several = "s" if len(vertex.macros) > 1 else ""
            yield f"{WITHIN}{several} {_listed(vertex.macros)}"

    def _numbered(self, match: re.Match[str]) -> str:
        return self._view.named(match[1], int(match[2])) or match[0]

    def _end(self, ref: str) -> str:
        vertex = self._view.vertices[ref]
        said = vertex.label if vertex.level in (ENTITY, MACRO, SUPER) else vertex.words
        return f'{ref} "{self._line(said)[:SHORT]}"'

    def _line(self, text: str) -> str:
        return " ".join(with_current_names(text, self._names).split())


def _split(text: str) -> tuple[str, list[str]]:
    """Split the text of a node into prose and the lines that code or a model added to it."""
    lines = text.splitlines()
    notes = [line for line in lines if _NOTE.match(line)]
    return " ".join(line for line in lines if not _NOTE.match(line)), notes


def _listed(parts: Sequence[str], between: str = ", ") -> str:
    """Join parts, at most so many that the line stays short."""
    more = len(parts) - MOST_LISTED
    said = between.join(parts[:MOST_LISTED])
    return f"{said}{between}and {more} more" if more > 0 else said


def macros_named(piece: Evidence) -> list[str]:
    """Return the refs of the macro events that a piece is, lies in or is made of."""
    own = [piece.ref] if _MACRO.match(piece.text) else []
    lines = [*_WITHIN.findall(piece.text), *_INSIDE.findall(piece.text)]
    return [*own, *(ref for line in lines for ref in _NODE.findall(line))]
