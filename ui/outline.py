"""The outline of a video: a node with its parts, which play, and its graph on demand."""

from __future__ import annotations

import streamlit as st

from domain.media import Video
from domain.words import capitalized, counted, format_number, format_span, translate
from library.outline_zoom import (
    BuiltOutline,
    ZoomedOutline,
    ZoomNode,
    load_graph,
    load_zoomed,
    outlines_of,
)
from ui.app_state import PageState
from ui.formatting import escape_markdown
from ui.navigation import int_param, page_link, paginate, requested_offset, set_params
from ui.outline_graph import as_dot
from ui.player import TONES, Lane, TimelineBar, seek, show_timeline

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
