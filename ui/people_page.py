"""The people page: who is in a video, when they appear, and corrections."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from domain.time import TimeSpan
from store.database import Store
from ui.app_state import page_state
from ui.corrections import (
    merge_people,
    separate_people,
    show_bulk_form,
    show_correction_forms,
    show_history,
    show_last_result,
)
from ui.errors import show_errors
from ui.formatting import escape_markdown, format_span, format_time
from ui.media import stored_image
from ui.navigation import (
    int_param,
    paginate,
    requested_offset,
    select_video,
    set_params,
    time_param,
)
from ui.player import seek, show_player
from ui.timeline import Lane, TimelineBar, show_timeline
from views.people_view import CardPair, PeopleView, PersonCard, likely_same_people, load_people_view

PEOPLE_PER_PAGE = 12
"""People per page."""
MAX_SUGGESTIONS = 8


def people_page() -> None:
    """Draw the people of the video that the address names."""
    st.title("People")
    show_errors(_body)


def _body() -> None:
    store = page_state().store
    video = select_video(store)
    if video is None:
        return
    show_last_result()
    requested, number = requested_offset(size=PEOPLE_PER_PAGE), int_param("person")
    people = load_people_view(store, video.id, requested, PEOPLE_PER_PAGE, number)
    if not people.people:
        st.info("Nobody was recognised in this video yet.")
        show_history(store, video)
        return
    offset = paginate(len(people.people), size=PEOPLE_PER_PAGE)
    if offset != requested:
        people = load_people_view(store, video.id, offset, PEOPLE_PER_PAGE, number)
    _show_timeline(people)
    left, right = st.columns([3, 2])
    with right:
        show_player(video, time_param() or 0)
        if people.chosen is not None:
            _show_person(store, people, people.chosen)
    with left:
        _show_people(store, people)
    _show_suggestions(store, people)
    show_bulk_form(store, people)
    show_history(store, video)


def _show_timeline(people: PeopleView) -> None:
    lanes = [_lane(card) for card in people.figures]
    name = f"When people are seen and heard in {people.video.title}"
    st.caption("Blue: seen. Green: heard. Click to play.")
    chosen = str(people.chosen.person.number) if people.chosen else ""
    picked = show_timeline(name, people.video.duration_ms, lanes, "appearances", chosen=chosen)
    if picked:
        number, _, start = picked.partition("@")
        seek(people.video.id, int(start))
        set_params(person=number)
        st.rerun()


def _lane(card: PersonCard) -> Lane:
    bars = [
        *_bars(card, card.seen, "seen", "upper"),
        *_bars(card, card.heard, "heard", "second lower"),
    ]
    return Lane(display_name(card), bars)


def _bars(card: PersonCard, spans: Sequence[TimeSpan], sense: str, tone: str) -> list[TimelineBar]:
    number = card.person.number
    return [
        TimelineBar(
            f"{number}@{span.start_ms}",
            span.start_ms,
            span.end_ms,
            f"{display_name(card)} is {sense} {format_span(span)}",
            tone=tone,
        )
        for span in spans
    ]


def display_name(card: PersonCard) -> str:
    """Return a person's name, or "Person" and the number."""
    label = card.person.label
    return f"Person {card.person.number}" if label.startswith("<") else label


def _show_people(store: Store, people: PeopleView) -> None:
    for card in people.figures:
        number = card.person.number
        with st.container(border=True, key=f"person_{number}"):
            image, text = st.columns([1, 4])
            with image:
                show_crop(store, card.crop, display_name(card))
            with text:
                _show_summary(card, is_open=card == people.chosen)


def _show_summary(card: PersonCard, *, is_open: bool) -> None:
    number = card.person.number
    mark = " (selected)" if is_open else ""
    st.markdown(f"**{escape_markdown(display_name(card))}**{mark}")
    span = f"{format_span(card.person.span)}, " if card.person.span else ""
    tags = " ".join(tag.strip("<>") for tag in card.person.tags)
    facts = f"{span}seen {card.person.seen} times, heard {card.person.heard} times, {tags}"
    st.caption(escape_markdown(f"number {number}, {facts}"))
    for candidate in card.person.maybe:
        st.caption(
            escape_markdown(
                f"may be number {candidate.number}, which is uncertain: {candidate.reason}"
            )
        )
    if st.button(
        "Open",
        key=f"open_{number}",
        help=escape_markdown(f"Show {display_name(card)}"),
        disabled=is_open,
    ):
        set_params(person=number)
        st.rerun()


def show_crop(store: Store, blob: str | None, name: str) -> None:
    """Draw a crop of a face, if there is one."""
    data = stored_image(store, blob)
    if data:
        st.image(data, alt=f"Face of {name}", width=90)
    else:
        st.caption("no image")


def _show_person(store: Store, people: PeopleView, card: PersonCard) -> None:
    st.subheader(escape_markdown(display_name(card)), anchor=False)
    names = [f"{name.name} ({name.source})" for name in card.person.names]
    st.write(escape_markdown(", ".join(names)) if names else "No name is known.")
    if card.crops:
        with st.container(horizontal=True, key="crops"):
            for tag, blob in list(card.crops.items())[:12]:
                data = stored_image(store, blob)
                if data:
                    st.image(
                        data,
                        caption=tag.strip("<>"),
                        alt=f"{tag.strip('<>')} of {display_name(card)}",
                        width=90,
                    )
    _show_moment_buttons(people, card)
    show_correction_forms(store, people, card)


def _show_moment_buttons(people: PeopleView, card: PersonCard) -> None:
    """Draw buttons that play the first appearances, as an alternative to the timeline."""
    spans = sorted({*card.seen, *card.heard}, key=lambda s: (s.start_ms, s.end_ms))[:6]
    with st.container(horizontal=True, key="moments"):
        for index, span in enumerate(spans):
            st.button(
                f"▶ {format_time(span.start_ms)}",
                key=f"moment_{card.person.number}_{index}",
                on_click=seek,
                args=(people.video.id, span.start_ms),
            )


def _show_suggestions(store: Store, people: PeopleView) -> None:
    st.header("Same person?", anchor=False)
    pairs = likely_same_people(store, people.video.id, MAX_SUGGESTIONS)
    if not pairs:
        st.caption("No two people here look or sound alike.")
    for pair in pairs:
        _show_suggestion(store, people, pair)


def _first_appearance_button(people: PeopleView, card: PersonCard, key: str) -> None:
    """Draw a button that plays a person's first appearance, to hear the voice."""
    if card.person.span is not None:
        st.button(
            f"▶ {escape_markdown(display_name(card))}",
            key=f"first_{key}_{card.person.number}",
            on_click=seek,
            args=(people.video.id, card.person.span.start_ms),
        )


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
            st.write(escape_markdown(f"{display_name(first)} and {display_name(second)}"))
            st.caption(f"similar {found.kind}, cosine {found.cosine:.2f}")
            with st.container(horizontal=True, key=f"say_{key}"):
                for card in (first, second):
                    _first_appearance_button(people, card, key)
                st.button(
                    "Yes, the same",
                    key=f"yes_{key}",
                    on_click=merge_people,
                    args=(store, people.video.id, found.other, found.one),
                )
                st.button(
                    "No",
                    key=f"no_{key}",
                    on_click=separate_people,
                    args=(store, people.video.id, found.one, found.other),
                )
