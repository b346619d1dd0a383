"""What strategies remember of a video: its outline with parts, which play, and the moment played.

The graph of a node of the outline is drawn on demand.
"""

from __future__ import annotations

from itertools import groupby

import streamlit as st

from domain.media import Video
from domain.moments import MemoryOfMoment
from domain.people import tags_in_words
from domain.words import (
    capitalized,
    counted,
    format_number,
    format_span,
    format_time,
    join_words,
    marked,
    translate,
)
from library.moments import load_moment
from library.outline_zoom import (
    BuiltOutline,
    NodeGraph,
    ZoomedOutline,
    ZoomNode,
    load_graph,
    load_zoomed,
    outlines_of,
)
from library.strategies import askable_titles
from store.database import Store
from ui.app_state import PageState
from ui.formatting import escape_markdown
from ui.media import stored_image
from ui.navigation import int_param, page_link, paginate, requested_offset, set_params
from ui.player import TONES, Lane, TimelineBar, played_ms, seek, show_timeline

PARTS_PER_PAGE = 12
"""Parts of a node on a page."""
FITTED = "<style>.st-key-outline_graph svg { max-width: 100%; height: auto; }</style>"
"""A graph is never wider than the page."""
NODE, PAGE = "outline", "parts"
"""Query parameters: the node that is zoomed into, and the page of its parts."""


def show_outline(state: PageState, video: Video) -> None:
    """Draw the outline of a video, if a strategy has built one; several can be chosen from."""
    outlines = outlines_of(state.store, video.id)
    if not outlines:
        return
    st.header(translate("Outline"), anchor=False)
    outline = outlines[0]
    if len(outlines) > 1:
        outline = st.selectbox(
            translate("Made of"),
            outlines,
            format_func=lambda one: one.strategy.title,
            key="outline_of",
            on_change=lambda: set_params(**{NODE: None, PAGE: None}),
        )
    requested = requested_offset(PAGE, PARTS_PER_PAGE)
    zoomed = load_zoomed(state.store, video.id, outline, int_param(NODE), requested, PARTS_PER_PAGE)
    # Buttons that lead back to the nodes that this one is in.
    if zoomed.path:
        with st.container(horizontal=True, vertical_alignment="center", key="outline_path"):
            for above in zoomed.path:
                label = escape_markdown(f"← {above.title or translate(above.noun)}")
                key = f"up_{above.id}"
                st.button(label, key=key, type="tertiary", on_click=_zoom, args=(above.id,))
    if zoomed.here is not None:
        node = zoomed.here
        with st.container(horizontal=True, vertical_alignment="center", key="outline_here"):
            _play_button(video, node, "here")
            st.markdown(f"**{escape_markdown(node.title)}**")
            st.caption(escape_markdown(translate(node.noun)))
        if node.text and node.text != node.title:
            st.write(escape_markdown(node.text))
    _show_parts(state, video, outline, zoomed, requested)
    if zoomed.here is not None:
        _show_graph(state, video, outline, zoomed.here)


def _zoom(node: int) -> None:
    set_params(**{NODE: node, PAGE: None})


def _play_button(video: Video, node: ZoomNode, key: str) -> None:
    st.button(
        f"▶ {format_span(node.span)}",
        key=f"{key}_{node.id}",
        on_click=seek,
        args=(video.id, node.span.start_ms),
    )


def _show_parts(
    state: PageState, video: Video, outline: BuiltOutline, zoomed: ZoomedOutline, requested: int
) -> None:
    """Draw what a node is made of: as bars over its time, and as a list; a press zooms in."""
    if not zoomed.total:
        return
    offset = paginate(zoomed.total, PAGE, PARTS_PER_PAGE)
    parts = zoomed.parts
    if offset != requested:
        here = zoomed.here.id if zoomed.here else None
        parts = load_zoomed(state.store, video.id, outline, here, offset, PARTS_PER_PAGE).parts
    bars = [
        TimelineBar(
            str(node.id),
            node.span.start_ms,
            node.span.end_ms,
            f"{format_span(node.span)} {node.title}",
            node.title,
            TONES[index % len(TONES)],
        )
        for index, node in enumerate(parts)
    ]
    start = zoomed.here.span.start_ms if zoomed.here else 0
    end = zoomed.here.span.end_ms if zoomed.here else video.duration_ms
    lane = Lane(capitalized(counted(zoomed.total, zoomed.noun)), bars)
    title = zoomed.here.title if zoomed.here else video.title
    picked = show_timeline(
        translate("Parts of {title}").format(title=title),
        end - start,
        [lane],
        "outline_timeline",
        start_ms=start,
    )
    if picked:
        _zoom(int(picked))
        st.rerun()
    for node in parts:
        with st.container(horizontal=True, vertical_alignment="center", key=f"part_{node.id}"):
            _play_button(video, node, "play_n")
            st.button(
                escape_markdown(node.title or translate(node.noun)),
                key=f"zoom_{node.id}",
                type="tertiary",
                on_click=_zoom,
                args=(node.id,),
                wrap=True,
            )


def _show_graph(state: PageState, video: Video, outline: BuiltOutline, node: ZoomNode) -> None:
    """Draw who and what a node is about, once that is asked for."""
    if not st.toggle(translate("Draw its graph"), key=f"graph_{node.id}"):
        return
    graph = load_graph(state.store, video.id, outline, node.id)
    if graph is None or not graph.vertices:
        st.caption(translate("Nothing is stated of who and what is in it."))
        return
    alt = translate("Graph of {title}: {relations}").format(
        title=node.title, relations=counted(graph.edges_total, "relation")
    )
    st.html(FITTED)
    with st.container(key="outline_graph"):
        st.graphviz_chart(as_dot(graph), width="content", alt=alt)
    if graph.vertices_total > len(graph.vertices) or graph.edges_total > len(graph.edges):
        shown, relations = len(graph.vertices), len(graph.edges)
        st.caption(
            translate(
                "The {shown} that have most to do with each other, of {total}; "
                "{shown_relations} of {relations}."
            ).format(
                shown=shown,
                total=format_number(graph.vertices_total),
                shown_relations=relations,
                relations=counted(graph.edges_total, "relation"),
            )
        )
    if graph.people:
        with st.container(horizontal=True, key="outline_people"):
            for one in graph.people:
                page_link("people", escape_markdown(one.name), video=video.id, person=one.person)


# The graph of a node in DOT, which the browser draws.


PERSON, OF_OUTLINE, OTHER = "#1d4ed8", "#0f766e", "#4b5563"
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
        shape, fill = ("box", OF_OUTLINE) if one.is_node else ("ellipse", OTHER)
        if one.person is not None and not one.is_node:
            fill = PERSON
        lines.append(f'v{one.id} [label={_quoted(one.name)}, shape="{shape}", fillcolor="{fill}"];')
    lines += [f"v{e.subject} -> v{e.target} [label={_quoted(e.label)}];" for e in graph.edges]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    r"""Return a text as a string of DOT, in which ``\N`` and the like stand for themselves."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# What each strategy remembers of the moment that plays.


MAX_TEXT_CHARS = 600
"""Characters shown of a text."""
SHARED = marked("Shared by all strategies")


def show_memory(state: PageState, video: Video) -> None:
    """Draw what is remembered of the moment that plays, strategy by strategy."""
    at_ms = played_ms(video)
    st.header(
        translate("What is remembered of {time}").format(time=format_time(at_ms)), anchor=False
    )
    st.caption(translate("It follows the player: pause it, or go to another moment."))
    titles = askable_titles()
    for moment in load_moment(state.store, video.id, at_ms):
        _show(state.store, moment, titles.get(moment.strategy, ""))


def _show(store: Store, moment: MemoryOfMoment, title: str) -> None:
    with st.container(border=True, key=f"moment_of_{moment.strategy or 'all'}"):
        st.markdown(f"**{escape_markdown(moment.strategy or translate(SHARED))}**")
        if title:
            st.caption(escape_markdown(translate(title)))
        if moment.writers:
            line = (
                translate("Memory written by {writers}")
                if moment.strategy
                else translate("Event graph written by {writers}")
            )
            writers = join_words([translate(writer) for writer in moment.writers])
            st.caption(escape_markdown(line.format(writers=writers)))
        if not (moment.nodes or moment.relations or moment.frames):
            st.write(translate("Nothing of this moment."))
        key = f"strip_{moment.strategy or 'all'}"
        with st.container(horizontal=True, key=key):
            for frame in moment.frames:
                data, time = stored_image(store, frame.blob), format_time(frame.span.start_ms)
                if data:
                    caption = escape_markdown(f"{time} {frame.source}".strip())
                    st.image(
                        data,
                        caption=caption,
                        alt=translate("Frame of the video at {time}").format(time=time),
                        width=150,
                    )
        for level, nodes in groupby(moment.nodes, key=lambda node: node.kind):
            lines = [f"**{escape_markdown(translate(level))}**"]
            for node in nodes:
                parts = (part for part in (node.label or node.source, node.text) if part)
                text = escape_markdown(_shortened(": ".join(dict.fromkeys(parts))))
                lines.append(f"{format_span(node.span)} {text}")
            st.markdown("  \n".join(lines))
        if not moment.relations:
            return
        count = moment.relations_total
        more = (
            translate(", {count} are shown").format(count=len(moment.relations))
            if count > len(moment.relations)
            else ""
        )
        with st.expander(
            translate("Relations that hold then ({count}{more})").format(count=count, more=more)
        ):
            lines = [
                f"{escape_markdown(_shortened(one.text))} "
                f"({escape_markdown(translate(one.kind))}, {format_span(one.span)})"
                for one in moment.relations
            ]
            st.markdown("  \n".join(lines))
            if moment.entities:
                named = join_words([_shortened(text) for text in moment.entities.values()])
                st.caption(escape_markdown(translate("Between: {named}").format(named=named)))


def _shortened(text: str) -> str:
    shown = " ".join(tags_in_words(text).split())
    return shown if len(shown) <= MAX_TEXT_CHARS else shown[:MAX_TEXT_CHARS].rstrip() + " …"
