"""The parts of WorldMM that can be switched off, to measure what each adds."""

from __future__ import annotations

GRAPH, SCALES, SEMANTIC, VISUAL = "graph", "scales", "semantic", "visual"

PARTS = {
    GRAPH: "entities and triples: captions are ranked by words and likeness alone",
    SCALES: "coarser captions: only the finest are searched",
    SEMANTIC: "what lasts: it is not searched",
    VISUAL: "kept frames: they are not searched",
}
