"""The parts of WorldMM that can be switched off, to measure what each adds."""

from __future__ import annotations

GRAPH, SCALES, SEMANTIC = "graph", "scales", "semantic"

PARTS = {
    GRAPH: "entities and triples: captions are ranked by words and likeness alone",
    SCALES: "coarser captions: only the finest are searched",
    SEMANTIC: "what lasts: it is not searched",
}
