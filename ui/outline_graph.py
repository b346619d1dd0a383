"""The graph of a node in DOT, which the browser draws."""

from __future__ import annotations

import streamlit as st

from library.outline_zoom import NodeGraph

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
    ]
    for one in graph.vertices:
        shape, fill = ("box", NODE) if one.is_node else ("ellipse", OTHER)
        if one.person is not None and not one.is_node:
            fill = PERSON
        lines.append(f'v{one.id} [label={_quoted(one.name)}, shape="{shape}", fillcolor="{fill}"];')
    lines += [f"v{e.subject} -> v{e.target} [label={_quoted(e.label)}];" for e in graph.edges]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    r"""Return a text as a string of DOT, in which ``\N`` and the like stand for themselves."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
