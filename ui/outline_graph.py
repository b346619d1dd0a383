"""The graph of a node in DOT, which the browser draws."""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from library.outline_zoom import GraphVertex, NodeGraph

PERSON, NODE, OTHER = "#1d4ed8", "#0f766e", "#4b5563"
"""Fills of people, of nodes of the outline, and of others: dark enough for white text."""
INK, INK_ON_DARK = "#374151", "#d1d5db"
"""Lines and the words on them, on light and on dark pages."""


def as_dot(graph: NodeGraph) -> str:
    """Return a graph in DOT; all words are quoted, so that none is an instruction."""
    ink = INK_ON_DARK if st.context.theme.type == "dark" else INK
    # Nodes of one level follow each other: across they would be wider than a page.
    way = "TB" if all(one.is_node for one in graph.vertices) else "LR"
    lines = [
        "digraph {",
        f'bgcolor="transparent"; rankdir="{way}"; ranksep="0.5"; nodesep="0.2";',
        'node [style="filled", fontcolor="#ffffff", color="transparent", fontsize="12"];',
        f'edge [color="{ink}", fontcolor="{ink}", fontsize="10"];',
        *_vertices(graph),
        *_edges(graph),
        "}",
    ]
    return "\n".join(lines)


def _vertices(graph: NodeGraph) -> Iterator[str]:
    for one in graph.vertices:
        shape = "box" if one.is_node else "ellipse"
        label, fill = _quoted(one.name), _fill(one)
        yield f'v{one.id} [label={label}, shape="{shape}", fillcolor="{fill}"];'


def _fill(one: GraphVertex) -> str:
    if one.is_node:
        return NODE
    return PERSON if one.person is not None else OTHER


def _edges(graph: NodeGraph) -> Iterator[str]:
    for one in graph.edges:
        yield f"v{one.subject} -> v{one.target} [label={_quoted(one.label)}];"


def _quoted(text: str) -> str:
    r"""Return a text as a string of DOT, in which ``\N`` and the like stand for themselves."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
