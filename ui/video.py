"""The video page: the player, the event graph, the clips, and a search in the video."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from domain.media import ClipState, Gap, Video
from domain.memories import Edge, EdgeType
from domain.moments import Event
from domain.people import tags_in_words
from domain.words import (
    format_number,
    format_span,
    format_time,
    marked,
    translate,
    translate_sentence,
)
from flows.video_locks import is_watched
from library.memory import (
    StreamDetails,
    clip_spans,
    clips,
    describe_gap,
    describe_watching,
    events,
    linked_events,
    load_stream_details,
)
from library.people import most_seen
from store.database import Store
from ui.app_state import PageState, page_state
from ui.corrections import deleted_lane, display_name, show_span_deletion
from ui.evidence import save_button
from ui.formatting import escape_markdown
from ui.ingestion import retry_button
from ui.live import show_live
from ui.navigation import (
    choice_param,
    int_param,
    page_link,
    paginated,
    select_video,
    set_params,
    text_param,
    time_param,
)
from ui.people_page import LEGEND, appearance_lane, picked_appearance
from ui.player import (
    TONES,
    Lane,
    TimelineBar,
    pack_rows,
    seek,
    show_keyframe,
    show_player,
    show_timeline,
)
from ui.remembered import show_memory, show_outline
from ui.transcript import show_scenes, show_transcript
from ui.video_search import show_search

CLIPS_PER_PAGE = 10
"""Clips per page."""
EVENTS_PER_PAGE = 300
"""Events per page of the timeline."""
MAX_LISTED = 50
"""Events listed below the timeline."""
MAX_EVIDENCE = 8
MAX_LANES = 8
"""People whose appearances are shown."""
MAX_GAPS = 200
"""Gaps of a stream that are shown: the last ones."""
STYLE = """<style>
@media (max-width: 640px) {
  .st-key-watch > * > [data-testid=stHorizontalBlock] { flex-direction: column; flex-wrap: nowrap; }
  .st-key-watch [data-testid=stColumn] { flex: none; width: 100%; }
  .st-key-watch [data-testid=stColumn]:first-child,
  .st-key-watch [data-testid=stColumn]:first-child > [data-testid=stVerticalBlock] {
    display: contents;
  }
  .st-key-watch [data-testid=stColumn]:first-child [data-testid=stVerticalBlock] > :first-child {
    position: sticky; top: 3.5rem; z-index: 2; background: var(--st-background-color, Canvas);
  }
  .st-key-watch video { max-height: 30vh; }
}
</style>"""
"""In a narrow window the player stays in view above its transcript."""
EVENTS, CLIPS, MEMORY = marked("Events"), marked("Clips"), marked("Memory")
SEARCH, LIVE = marked("Search"), marked("Live")
VIEWS = (EVENTS, CLIPS, MEMORY, SEARCH)


def video_page() -> None:
    st.title(translate("Video"))
    state = page_state()
    video = select_video(state.store)
    if video is None:
        return
    with st.container(horizontal=True, key="ways"):
        page_link("people", translate("Its people"), video=video.id)
        page_link("ask", translate("Ask about it"), video=video.id)
    number = int_param("segment")
    linked = {} if number is None else linked_events(state.store, video.id, number)
    # Where the player starts: at the address's time, else at the segment.
    event = None if number is None else linked.get(number)
    moment = time_param()
    start_ms = moment if moment is not None else event.span.start_ms if event else 0
    _show_facts(video)
    st.html(STYLE)
    with st.container(key="watch"):
        left, right = st.columns([3, 2])
        with left:
            # Only the memory follows the player: each report draws the page anew.
            show_player(video, start_ms, reports=text_param("show") == MEMORY)
            show_scenes(state, video, start_ms)
        with right:
            show_transcript(state, video, start_ms)
    if event is not None:
        with st.container(border=True, key="opened_event"):
            store = state.store
            st.header(escape_markdown(event.label), anchor=False)
            with st.container(horizontal=True, key=f"ways_{event.ref}"):
                _play_button(
                    video, event.span.start_ms, format_span(event.span), f"play_{event.ref}"
                )
                save_button(store, video, event.span, event.ref)
            st.write(escape_markdown(event.text))
            for edge in event.edges:
                if edge.target in linked:
                    _show_edge(store, video, edge, "→", event, linked[edge.target])
            for other in linked.values():
                for edge in other.edges if other is not event else ():
                    _show_edge(store, video, edge, "←", event, other)
    show_outline(state, video)
    _show_people(state.store, video)
    stream = load_stream_details(state.store, video.id)
    if stream is not None:
        _show_gaps(stream, video)
    names = [*VIEWS]
    if stream is not None:  # The live view is the first while it is watched.
        names.insert(0 if is_watched(state.store, video.id) else len(names), LIVE)
    view = choice_param(translate("Show"), names, "show")
    views = {
        EVENTS: _show_events,
        CLIPS: _show_clips,
        MEMORY: show_memory,
        SEARCH: show_search,
        LIVE: show_live,
    }
    views.get(view, _show_events)(state, video)
    if state.store.may_change:
        show_span_deletion(state, video)


def _show_facts(video: Video) -> None:
    """Draw its length, size and models, and what of the file is not watched or is odd."""
    size = (
        translate(", {width} x {height} pixels").format(width=video.width, height=video.height)
        if video.width
        else ""
    )
    length = translate("{time} long{size}").format(time=format_time(video.duration_ms), size=size)
    st.caption(
        escape_markdown(
            translate("{length}, watched with the models {profile}").format(
                length=length, profile=video.profile
            )
        )
    )
    for remark in video.remarks:
        st.caption(escape_markdown(translate_sentence(remark)))


def _show_people(store: Store, video: Video) -> None:
    """Draw when the people who appear most are seen and heard."""
    found = most_seen(store, video.id, MAX_LANES)
    if not found.items:
        return
    lanes = [
        appearance_lane(one.number, display_name(one), one.seen_spans, one.heard_spans)
        for one in found.items
    ]
    name = translate("When people are seen and heard in {title}").format(title=video.title)
    picked = show_timeline(name, video.duration_ms, lanes, "people_timeline")
    more = (
        translate(" The {count} who appear most, of {total}.").format(
            count=MAX_LANES, total=found.total
        )
        if found.total > MAX_LANES
        else ""
    )
    st.caption(f"{translate(LEGEND)}{more}")
    if picked:
        seek(video.id, picked_appearance(picked)[1])
        st.rerun()


def _show_gaps(stream: StreamDetails, video: Video) -> None:
    st.caption(
        escape_markdown(translate("A live stream from {source}").format(source=stream.source))
    )
    if stream.gaps:
        bars = [
            TimelineBar(
                f"g{number}",
                gap.span.start_ms,
                gap.span.end_ms,
                translate("Gap {time}: {reason}").format(
                    time=format_span(gap.span), reason=describe_gap(gap)
                ),
                tone=TONES[-1],
            )
            for number, gap in enumerate(stream.gaps[-MAX_GAPS:])
        ]
        lanes = [
            Lane(translate("Gaps") if not index else "", row)
            for index, row in enumerate(pack_rows(bars))
        ]
        show_timeline(
            translate("Gaps of {title}").format(title=video.title),
            video.duration_ms,
            lanes,
            "gaps_timeline",
        )
        with st.expander(
            translate("Gaps ({count}): these times are not in memory").format(
                count=len(stream.gaps)
            )
        ):
            for gap in stream.gaps[-MAX_GAPS:]:
                st.write(escape_markdown(f"{format_span(gap.span)}  {describe_gap(gap)}"))


def _show_edge(
    store: Store, video: Video, edge: Edge, arrow: str, here: Event, other: Event
) -> None:
    chosen = int_param("edge") == edge.id
    label = escape_markdown(
        f"{arrow} {translate(edge.relation)} ({translate(edge.relation.type)}): {other.label}"
    )
    with st.expander(label, expanded=chosen):
        st.write(escape_markdown(edge.rationale) or translate("No rationale is given."))
        origin = translate("stated") if edge.explicit else translate("inferred")
        st.caption(
            translate("{origin}, confidence {confidence}; evidence:").format(
                origin=origin, confidence=format_number(edge.confidence, ".2f")
            )
        )
        with st.container(horizontal=True, key=f"proof_{here.number}_{edge.id}"):
            for span in clip_spans(store, video.id, edge.evidence[:MAX_EVIDENCE]):
                key = f"e{here.number}_{edge.id}_{span.start_ms}"
                _play_button(video, span.start_ms, format_span(span), key)
        if st.button(translate("Go there"), key=f"go_{here.number}_{edge.id}"):
            _open_segment(video, other)


def _play_button(video: Video, at_ms: int, label: str, key: str) -> None:
    st.button(f"▶ {label}", key=key, on_click=seek, args=(video.id, at_ms))


def _open_segment(video: Video, event: Event, edge: int | None = None) -> None:
    seek(video.id, event.span.start_ms)
    set_params(segment=event.number, edge=edge)
    st.rerun()


def _show_events(state: PageState, video: Video) -> None:
    segments = paginated(
        lambda start: events(state.store, video.id, start, EVENTS_PER_PAGE),
        "events",
        EVENTS_PER_PAGE,
    )
    if not segments:
        st.write(translate("There are no events yet: they are written every ten clips."))
        return
    chosen = int_param("segment")
    picked = show_timeline(
        translate("Events of {title}").format(title=video.title),
        video.duration_ms,
        [
            *(
                Lane(translate("Events") if not index else "", row)
                for index, row in enumerate(_event_rows(segments))
            ),
            *deleted_lane(state.store, video),
        ],
        "events_timeline",
        chosen=f"s{chosen}",
        arcs=_arcs(segments),
        arcs_name=translate("Links"),
    )
    st.caption(translate("Dashed grey lines are temporal links, orange lines causal ones."))
    # Open the event of a clicked bar, or the source of a clicked arc with its evidence.
    targets: dict[str, tuple[Event, int | None]] = {one.ref: (one, None) for one in segments}
    targets |= {f"e{edge.id}": (one, edge.id) for one in segments for edge in one.edges}
    if picked in targets:
        _open_segment(video, *targets[picked])
    st.caption(translate("Click an event to see its summary and evidence."))
    for segment in segments[:MAX_LISTED]:
        with st.container(horizontal=True, vertical_alignment="center", key=f"event_{segment.ref}"):
            if st.button(
                translate("Open"),
                key=f"open_{segment.ref}",
                help=escape_markdown(
                    translate("Open the event {label}").format(label=segment.label)
                ),
            ):
                _open_segment(video, segment)
            st.write(escape_markdown(f"{format_span(segment.span)}  {segment.label}"))
    if len(segments) > MAX_LISTED:
        st.caption(
            translate("The first {count} of {total}; the timeline shows all of them.").format(
                count=MAX_LISTED, total=len(segments)
            )
        )


def _event_rows(segments: Sequence[Event]) -> list[list[TimelineBar]]:
    bars = [
        TimelineBar(
            segment.ref,
            segment.span.start_ms,
            segment.span.end_ms,
            f"{format_span(segment.span)} {segment.label}",
            segment.label,
            TONES[index % len(TONES)],
        )
        for index, segment in enumerate(segments)
    ]
    return pack_rows(bars)


def _arcs(shown: Sequence[Event]) -> list[TimelineBar]:
    by_number = {one.number: one for one in shown}
    return [
        TimelineBar(
            f"e{edge.id}",
            _midpoint(one),
            _midpoint(target),
            f"{one.label} {translate(edge.relation)} {target.label}: {edge.rationale}",
            tone="causal" if edge.relation.type is EdgeType.CAUSAL else "temporal",
        )
        for one in shown
        for edge in one.edges
        if (target := by_number.get(edge.target))
    ]


def _midpoint(event: Event) -> int:
    return (event.span.start_ms + event.span.end_ms) // 2


def _show_clips(state: PageState, video: Video) -> None:
    shown = paginated(
        lambda start: clips(state.store, video.id, start, CLIPS_PER_PAGE), "clips", CLIPS_PER_PAGE
    )
    stream = load_stream_details(state.store, video.id)
    for clip in shown:
        starts = [earlier.span.start_ms for earlier in shown if earlier.index == clip.index - 1]
        # A gap is drawn before the clip that follows it, if the clip before is on this page.
        since = starts[0] if starts else 0
        for gap in stream.gaps if stream and (starts or not clip.index) else ():
            if since <= gap.span.start_ms < clip.span.start_ms:
                _show_gap(gap)
        with st.container(border=True, key=f"clip_{clip.index}"):
            with st.container(
                horizontal=True, vertical_alignment="center", key=f"head_{clip.index}"
            ):
                _play_button(
                    video, clip.span.start_ms, format_span(clip.span), f"play_c{clip.index}"
                )
                save_button(state.store, video, clip.span, f"c{clip.index}")
                st.caption(
                    translate("clip {index}, {state}").format(
                        index=clip.index, state=translate(clip.state)
                    )
                )
            if stream is not None and clip.index in stream.clips:
                st.caption(escape_markdown(describe_watching(stream.clips[clip.index])))
            if clip.error:
                error = escape_markdown(translate_sentence(clip.error))
                st.markdown(translate("Failed: {error}").format(error=error))
            if (clip.state == ClipState.FAILED or clip.unwritten) and video.path:
                retry_button(state.store, video.id, clip.index)
            for gap in clip.gaps:
                _show_gap(gap)
            with st.container(horizontal=True, key=f"frames_{clip.index}"):
                for frame in clip.keyframes:
                    show_keyframe(state.store, frame)
            if clip.dropped:
                st.caption(
                    escape_markdown(
                        translate("Not stored: {parts}.").format(parts="; ".join(clip.dropped))
                    )
                )
            lines = [
                f"{format_time(line.span.start_ms)} *{translate(line.source)}* "
                f"{escape_markdown(tags_in_words(line.text))}"
                for line in clip.lines
            ]
            st.markdown("  \n".join(lines))
            if clip.state == ClipState.DELETED:
                st.caption(translate("This part was deleted, and is not watched again."))
            elif not clip.lines and not clip.error:
                st.caption(translate("Nothing was said, read or seen here."))


def _show_gap(gap: Gap) -> None:
    time, reason = format_span(gap.span), describe_gap(gap)
    st.caption(escape_markdown(translate("Gap {time}: {reason}").format(time=time, reason=reason)))
