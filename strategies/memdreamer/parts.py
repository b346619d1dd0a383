"""The parts of MemDreamer that can be switched off, to measure what each adds."""

from __future__ import annotations

GRAPH, HIERARCHY = "graph", "hierarchy"

PARTS = {
    GRAPH: "entities and edges: micro-events and screen text stand alone",
    HIERARCHY: "root, super events and summaries: only nodes are searched",
}
"""Without both it is flat: a search of micro-events and screen text."""
