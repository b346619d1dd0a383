"""The video page: the player, the events and what joins them, the clips, and a search inside."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from domain.asking import Mode
from domain.media import ClipState, Video
from domain.memories import EdgeType, Segment
from domain.people import tags_in_words
from retrieval.search_once import search_once
from store.database import Store
from store.queries.keyframes import StoredKeyframe
from ui import address
from ui.app_state import PageState, page_desk
from ui.choosing import chosen_video
from ui.cutting import delete_part, deleted_lane
from ui.evidence import show_moment
from ui.failed import retry_button
from ui.faults import guarded
from ui.images import image_of
from ui.pages import link
from ui.paging import offset_of, wanted_offset
from ui.player import player, seek
from ui.timeline import TONES, Arc, Lane, TimelineBar, packed, timeline
from ui.times import from_to, hms
from ui.words import plain
from views.library import ShownClip
from views.streams import StreamDetails, describe_gap, describe_watching, load_stream_details
from views.video_view import (
    GraphPage,
    SegmentView,
    ShownEdge,
    clip_spans,
    count_events,
    load_clips_page,
    load_graph_page,
    load_segment_view,
)

CLIPS = 10
"""Clips a page."""
EVENTS = 300
"""Events on one timeline; more are shown a page at a time."""
LISTED = 50
"""Events of those that are listed below it."""
EVIDENCE = 8
GAPS = 200
"""Gaps that are shown: the last of a stream."""
VIEWS = ("Events", "Clips", "Search")
MODES = {"What was said, read and seen": Mode.VIDEO, "Events": Mode.EVENT, "Images": Mode.KEYFRAME}


def video_page() -> None:
    """The video that the address names."""
    st.title("Video")
    guarded(_body)


def _body() -> None:
    desk = page_desk()
    video = chosen_video(desk.store)
    if video is None:
        return
    with st.container(horizontal=True, key="ways"):
        link("people", "Its people", video=video.id)
        link("ask", "Ask about it", video=video.id)
    number = address.number("segment")
    event = load_segment_view(desk.store, video.id, number) if number is not None else None
    left, right = st.columns([3, 2])
    with left:
        player(video, _start(event.segment if event else None))
    with right:
        if event is not None:
            _segment(desk.store, video, event)
        else:
            _facts(video, count_events(desk.store, video.id))
    _gaps(desk.store, video)
    view = st.radio("Show", VIEWS, horizontal=True, key="show", bind="query-params")
    views = {"Events": _events, "Clips": _clips, "Search": _search}
    views.get(view or VIEWS[0], _events)(desk, video)
    delete_part(desk, video)


def _start(segment: Segment | None) -> int:
    """Where the player stands at first: the address's moment, else the segment's beginning."""
    told = address.moment()
    return told if told is not None else (segment.span.start_ms if segment else 0)


def _facts(video: Video, events: int) -> None:
    size = f", {video.width} x {video.height} pixels" if video.width else ""
    st.subheader(plain(video.title), anchor=False)
    st.write(plain(f"{hms(video.duration_ms)} long{size}"))
    st.caption(plain(f"{events} events, watched with the profile {video.profile}"))
    if events:
        st.caption("Press an event below to see what it is about and what it rests on.")


def _gaps(store: Store, video: Video) -> None:
    """Of a live stream: what of it is in memory, and what is missing and why."""
    told = load_stream_details(store, video.id)
    if told is None:
        return
    st.caption(plain(f"A live stream from {told.source}"))
    if told.gaps:
        bars = [
            TimelineBar(
                f"g{number}",
                gap.span.start_ms,
                gap.span.end_ms,
                f"Gap {from_to(gap.span)}: {describe_gap(gap)}",
                tone=TONES[-1],
            )
            for number, gap in enumerate(told.gaps[-GAPS:])
        ]
        lanes = [Lane("Gaps" if not n else "", row) for n, row in enumerate(packed(bars))]
        timeline(f"Gaps of {video.title}", video.duration_ms, lanes, "gaps_timeline")
        with st.expander(f"Gaps ({len(told.gaps)}): nothing of these times is in memory"):
            for gap in told.gaps[-GAPS:]:
                st.write(plain(f"{from_to(gap.span)}  {describe_gap(gap)}"))


def _segment(store: Store, video: Video, event: SegmentView) -> None:
    one = event.segment
    st.subheader(plain(one.label), anchor=False)
    _play(video, one.span.start_ms, from_to(one.span), f"play_s{one.id}")
    st.write(plain(one.summary))
    for joined in event.links:
        _link(store, video, joined, one)


def _link(store: Store, video: Video, joined: ShownEdge, here: Segment) -> None:
    edge = joined.edge
    other = joined.target if joined.source.id == here.id else joined.source
    arrow = "→" if joined.source.id == here.id else "←"
    chosen = address.number("edge") == edge.id
    label = plain(f"{arrow} {edge.relation} ({edge.relation.type}): {other.label}")
    with st.expander(label, expanded=chosen):
        st.write(plain(edge.rationale) or "No reason is given.")
        how = "stated" if edge.explicit else "inferred"
        st.caption(f"{how}, confidence {edge.confidence:.2f}; evidence:")
        with st.container(horizontal=True, key=f"proof_{here.id}_{edge.id}"):
            for span in clip_spans(store, video.id, edge.evidence[:EVIDENCE]):
                key = f"e{here.id}_{edge.id}_{span.start_ms}"
                _play(video, span.start_ms, from_to(span), key)
        if st.button("Go there", key=f"go_{here.id}_{edge.id}"):
            _open(video, other)


def _play(video: Video, at_ms: int, label: str, key: str) -> None:
    st.button(f"▶ {label}", key=key, on_click=seek, args=(video.id, at_ms))


def _open(video: Video, segment: Segment, edge: int | None = None) -> None:
    seek(video.id, segment.span.start_ms)
    address.say(segment=segment.id, edge=edge)
    st.rerun()


def _events(desk: PageState, video: Video) -> None:
    start = wanted_offset("events", EVENTS)
    graph = load_graph_page(desk.store, video.id, start, EVENTS)
    if not graph.total:
        st.info("No events are known yet: they come after every ten clips.")
        return
    offset = offset_of(graph.total, "events", EVENTS)
    if offset != start:
        graph = load_graph_page(desk.store, video.id, offset, EVENTS)
    shown = graph.segments
    chosen = address.number("segment")
    picked = timeline(
        f"Events of {video.title}",
        video.duration_ms,
        [
            *(Lane("Events" if not n else "", row) for n, row in enumerate(_rows(shown))),
            *deleted_lane(desk.store, video),
        ],
        "events_timeline",
        chosen=f"s{chosen}",
        arcs=_arcs(graph.links),
        arcs_name="Links",
    )
    st.caption("Grey dashes join events in time, orange lines by cause.")
    _picked(video, graph, picked)
    for one in shown[:LISTED]:
        _entry(video, one)
    if len(shown) > LISTED:
        st.caption(f"The first {LISTED} of {len(shown)}; the timeline has them all.")


def _picked(video: Video, graph: GraphPage, picked: str | None) -> None:
    """A bar opens its event, an arc the event that it leads from, with what it rests on."""
    ways: dict[str, tuple[Segment, int | None]] = {f"s{s.id}": (s, None) for s in graph.segments}
    ways |= {f"e{link.edge.id}": (link.source, link.edge.id) for link in graph.links}
    if picked in ways:
        _open(video, *ways[picked])


def _rows(shown: Sequence[Segment]) -> list[list[TimelineBar]]:
    bars = [
        TimelineBar(
            f"s{one.id}",
            one.span.start_ms,
            one.span.end_ms,
            f"{from_to(one.span)} {one.label}",
            one.label,
            TONES[at % len(TONES)],
        )
        for at, one in enumerate(shown)
    ]
    return packed(bars)


def _arcs(links: Sequence[ShownEdge]) -> list[Arc]:
    return [
        Arc(
            _middle(one.source),
            _middle(one.target),
            f"{one.source.label} {one.edge.relation} {one.target.label}: {one.edge.rationale}",
            "causal" if one.edge.relation.type is EdgeType.CAUSAL else "temporal",
            f"e{one.edge.id}",
        )
        for one in links
    ]


def _middle(one: Segment) -> int:
    return (one.span.start_ms + one.span.end_ms) // 2


def _entry(video: Video, one: Segment) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=f"event_{one.id}"):
        if st.button("Open", key=f"open_s{one.id}", help=plain(f"Open the event {one.label}")):
            _open(video, one)
        st.write(plain(f"{from_to(one.span)}  {one.label}"))


def _clips(desk: PageState, video: Video) -> None:
    start = wanted_offset("clips", CLIPS)
    found = load_clips_page(desk.store, video, start, CLIPS)
    offset = offset_of(found.total, "clips", CLIPS)
    if offset != start:
        found = load_clips_page(desk.store, video, offset, CLIPS)
    told = load_stream_details(desk.store, video.id)
    for clip in found.clips:
        _before(told, clip, found.clips)
        _clip(desk.store, video, clip, found.frames.get(clip.index, ()), told)


def _before(told: StreamDetails | None, clip: ShownClip, shown: Sequence[ShownClip]) -> None:
    """The gaps of a stream since the clip before it began."""
    begun = [one.span.start_ms for one in shown if one.index == clip.index - 1]
    since = begun[0] if begun else 0
    for gap in told.gaps if told and (begun or not clip.index) else ():
        if since <= gap.span.start_ms < clip.span.start_ms:
            st.info(plain(f"Gap {from_to(gap.span)}: {describe_gap(gap)}"))


def _clip(
    store: Store,
    video: Video,
    clip: ShownClip,
    frames: Sequence[StoredKeyframe],
    told: StreamDetails | None,
) -> None:
    with st.container(border=True, key=f"clip_{clip.index}"):
        with st.container(horizontal=True, vertical_alignment="center", key=f"head_{clip.index}"):
            _play(video, clip.span.start_ms, from_to(clip.span), f"play_c{clip.index}")
            st.caption(f"clip {clip.index}, {clip.state}")
        if told is not None and clip.index in told.clips:
            st.caption(plain(describe_watching(told.clips[clip.index])))
        if clip.error:
            st.warning(plain(clip.error))
        if clip.state == ClipState.FAILED and video.path:
            retry_button(store, video.id, clip.index)
        _frames(store, clip, frames)
        lines = [
            f"{hms(line.span.start_ms)} *{line.source}* {plain(tags_in_words(line.text))}"
            for line in clip.lines
        ]
        st.markdown("  \n".join(lines))
        if clip.state == ClipState.DELETED:
            st.caption("What was here was deleted, and it is not watched again.")
        elif not clip.lines and not clip.error:
            st.caption("Nothing was said, read or seen here.")


def _frames(store: Store, clip: ShownClip, frames: Sequence[StoredKeyframe]) -> None:
    images = [(frame, image_of(store, frame.blob)) for frame in frames]
    with st.container(horizontal=True, key=f"frames_{clip.index}"):
        for frame, data in images:
            if data:
                told = hms(frame.time_ms)
                alt = frame.description or f"Frame of the video at {told}"
                st.image(data, caption=told, alt=alt, width=190)


def _search(desk: PageState, video: Video) -> None:
    with st.form("search", border=False):
        query = st.text_input("Search in this video", address.told("q"))
        mode = st.radio("Look for", list(MODES), horizontal=True)
        sent = st.form_submit_button("Search", type="primary")
    if sent:
        address.say(q=query or None)
    elif not address.told("q"):
        return
    with st.spinner("Searching ..."):
        retrievers = desk.retrievers(video.profile)
        found, _ = search_once(desk.store, retrievers, MODES[mode], query, (video.id,))
    if found.nothing_close:
        st.warning("Nothing close. What was nearest:")
    for number, piece in enumerate(found.evidence):
        show_moment(desk.store, piece, {video.id: video}, f"found_{number}")
