"""The people page: who is in a video, when they appear, and corrections."""

from __future__ import annotations

import streamlit as st

from domain.marked import marked
from store.database import Store
from ui.app_state import page_state
from ui.appearances import LEGEND, appearance_lane, picked_appearance
from ui.corrections import (
    display_name,
    merge_people,
    name_field,
    selection_key,
    separate_people,
    show_correction_forms,
    show_history,
    show_last_result,
    show_merge_bar,
)
from ui.errors import show_errors
from ui.formatting import escape_markdown
from ui.library_people import alike_line, show_crop, show_library_people, show_other_videos
from ui.navigation import (
    choice_param,
    int_param,
    paginate,
    requested_offset,
    select_video,
    set_params,
    streamlit_page,
    time_param,
)
from ui.player import seek, show_player
from ui.timeline import show_timeline
from views.people_view import CardPair, PeopleView, PersonCard, likely_same_people, load_people_view
from views.translation import translate, translate_count
from views.words import format_span, format_time, join_words

PEOPLE_PER_PAGE = 12
"""People per page."""
SOURCES = {
    "said": marked("said"),
    "read": marked("on screen"),
    "caption": marked("captions"),
    "person": marked("by you"),
}
"""Where a name is from, in words."""
ONE_VIDEO, ALL_VIDEOS = marked("One video"), marked("All videos")
GRID = """<style>
.st-key-faces { display: grid; gap: 0.8rem;
  grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr)); }
</style>"""
"""Cards beside each other, as many as fit."""
MAX_SUGGESTIONS = 8


def people_page() -> None:
    """Draw the people of the video that the address names."""
    st.title(translate("People"))
    show_errors(_body)


def _body() -> None:
    store = page_state().store
    shown = choice_param(translate("Show"), (ONE_VIDEO, ALL_VIDEOS), "of")
    if shown == ALL_VIDEOS:
        show_library_people(store)
        return
    video = select_video(store)
    if video is None:
        return
    show_last_result(store, video.id)
    requested, number = requested_offset(size=PEOPLE_PER_PAGE), int_param("person")
    people = load_people_view(store, video.id, requested, PEOPLE_PER_PAGE, number)
    if not people.people:
        st.write(translate("Nobody was recognised in this video yet."))
        if st.button(translate("Open the video"), type="primary"):
            st.switch_page(streamlit_page("video"), query_params={"video": video.id})
        show_history(store, video)
        return
    offset = paginate(len(people.people), size=PEOPLE_PER_PAGE)
    if offset != requested:
        people = load_people_view(store, video.id, offset, PEOPLE_PER_PAGE, number)
    left, right = st.columns([3, 2])
    with left:
        st.html(GRID)
        show_merge_bar(store, people)
        with st.container(key="faces"):
            for card in people.figures:
                with st.container(border=True, key=f"person_{card.person.number}"):
                    _show_card(store, people, card)
    with right:
        show_player(video, time_param() or 0)
        if people.chosen is not None:
            _show_person(store, people, people.chosen)
    _show_timeline(people)
    _show_suggestions(store, people)
    show_history(store, video)


def _show_timeline(people: PeopleView) -> None:
    st.header(translate("When they appear"), anchor=False)
    lanes = [
        appearance_lane(card.person.number, display_name(card), card.seen, card.heard)
        for card in people.figures
    ]
    name = translate("When people are seen and heard in {title}").format(title=people.video.title)
    st.caption(translate(LEGEND))
    chosen = str(people.chosen.person.number) if people.chosen else ""
    picked = show_timeline(name, people.video.duration_ms, lanes, "appearances", chosen=chosen)
    if picked:
        number, start_ms = picked_appearance(picked)
        seek(people.video.id, start_ms)
        set_params(person=number)
        st.rerun()


def _show_card(store: Store, people: PeopleView, card: PersonCard) -> None:
    number, name = card.person.number, display_name(card)
    show_crop(store, card.crop, name)
    name_field(store, people.video.id, card)
    st.caption(escape_markdown(_appearances(card)))
    for candidate in card.person.maybe:
        st.caption(
            escape_markdown(
                translate("May be person {number}: {reason}").format(
                    number=candidate.number, reason=translate(candidate.reason)
                )
            )
        )
    with st.container(horizontal=True, vertical_alignment="center", key=f"do_{number}"):
        if store.may_change:
            st.checkbox(translate("Select"), key=selection_key(people.video.id, number))
        if st.button(
            translate("Open"),
            key=f"open_{number}",
            help=escape_markdown(translate("Show {name}").format(name=name)),
            disabled=people.chosen is not None and card.person == people.chosen.person,
        ):
            set_params(person=number)
            st.rerun()


def _appearances(card: PersonCard) -> str:
    person = card.person
    facts = [format_span(person.span)] if person.span else []
    if person.seen:
        facts.append(translate_count("seen {number} time", "seen {number} times", person.seen))
    if person.heard:
        facts.append(translate_count("heard {number} time", "heard {number} times", person.heard))
    return ", ".join(facts)


def _show_person(store: Store, people: PeopleView, card: PersonCard) -> None:
    st.header(escape_markdown(display_name(card)), anchor=False)
    names = [
        f"{name.name} ({translate(SOURCES.get(name.source, name.source))})"
        for name in card.person.names
    ]
    if names:
        st.write(escape_markdown(", ".join(names)))
    spans = sorted({*card.seen, *card.heard}, key=lambda s: (s.start_ms, s.end_ms))[:6]
    with st.container(horizontal=True, key="moments"):
        for index, span in enumerate(spans):
            st.button(
                f"▶ {format_time(span.start_ms)}",
                key=f"moment_{card.person.number}_{index}",
                on_click=seek,
                args=(people.video.id, span.start_ms),
            )
    show_other_videos(store, people.video.id, card.person.number)
    show_correction_forms(store, people, card)


def _show_suggestions(store: Store, people: PeopleView) -> None:
    if not store.may_change:
        return
    st.header(translate("Same person?"), anchor=False)
    pairs = likely_same_people(store, people.video.id, MAX_SUGGESTIONS)
    if not pairs:
        st.caption(translate("No likely duplicates."))
    for pair in pairs:
        _show_suggestion(store, people, pair)


def _show_suggestion(store: Store, people: PeopleView, pair: CardPair) -> None:
    first, second, found = pair.one, pair.other, pair.found
    key = f"{found.one}_{found.other}"
    with st.container(border=True, key=f"pair_{key}"):
        left, right, text = st.columns([1, 1, 4])
        with left:
            show_crop(store, first.crop, display_name(first))
        with right:
            show_crop(store, second.crop, display_name(second))
        with text:
            st.write(escape_markdown(join_words([display_name(first), display_name(second)])))
            st.caption(alike_line(found.kind, found.cosine))
            with st.container(horizontal=True, key=f"say_{key}"):
                for card in (first, second):
                    if card.person.span is not None:
                        st.button(
                            f"▶ {escape_markdown(display_name(card))}",
                            key=f"first_{key}_{card.person.number}",
                            on_click=seek,
                            args=(people.video.id, card.person.span.start_ms),
                        )
                st.button(
                    translate("Yes, the same"),
                    key=f"yes_{key}",
                    on_click=merge_people,
                    args=(store, people.video.id, [second.person], first.person),
                )
                st.button(
                    translate("No"),
                    key=f"no_{key}",
                    on_click=separate_people,
                    args=(store, people.video.id, first, second),
                )
