"""The people page: who is who in a video, when they appear, and putting it right."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from domain.time import TimeSpan
from store.database import Store
from ui import address
from ui.app_state import page_desk
from ui.changes import merged, show_bulk, show_changes, show_history, told_apart, told_last
from ui.choosing import chosen_video
from ui.faults import guarded
from ui.images import image_of
from ui.paging import offset_of, wanted_offset
from ui.player import player, seek
from ui.timeline import Lane, TimelineBar, timeline
from ui.times import from_to, hms
from ui.words import plain
from views.people_view import CardPair, PeopleView, PersonCard, likely_same_people, load_people_view

ROWS = 12
"""People a page."""
SUGGESTED = 8


def people_page() -> None:
    """The people of the video that the address names."""
    st.title("People")
    guarded(_body)


def _body() -> None:
    store = page_desk().store
    video = chosen_video(store)
    if video is None:
        return
    told_last()
    start, number = wanted_offset(size=ROWS), address.number("person")
    shown = load_people_view(store, video.id, start, ROWS, number)
    if not shown.people:
        st.info("Nobody was recognised in this video yet.")
        show_history(store, video)
        return
    offset = offset_of(len(shown.people), size=ROWS)
    if offset != start:
        shown = load_people_view(store, video.id, offset, ROWS, number)
    _over_time(shown)
    left, right = st.columns([3, 2])
    with right:
        player(video, address.moment() or 0)
        if shown.chosen is not None:
            _person(store, shown, shown.chosen)
    with left:
        _list(store, shown)
    _suggestions(store, shown)
    show_bulk(store, shown)
    show_history(store, video)


def _over_time(shown: PeopleView) -> None:
    lanes = [_lane(one) for one in shown.figures]
    name = f"When people are seen and heard in {shown.video.title}"
    st.caption("Blue: seen. Green: heard. A press plays that moment.")
    mark = str(shown.chosen.person.number) if shown.chosen else ""
    picked = timeline(name, shown.video.duration_ms, lanes, "appearances", chosen=mark)
    if picked:
        number, _, start = picked.partition("@")
        seek(shown.video.id, int(start))
        address.say(person=number)
        st.rerun()


def _lane(one: PersonCard) -> Lane:
    bars = [*_bars(one, one.seen, "seen", "upper"), *_bars(one, one.heard, "heard", "second lower")]
    return Lane(name_of(one), bars)


def _bars(one: PersonCard, spans: Sequence[TimeSpan], how: str, tone: str) -> list[TimelineBar]:
    number = one.person.number
    return [
        TimelineBar(
            f"{number}@{span.start_ms}",
            span.start_ms,
            span.end_ms,
            f"{name_of(one)} is {how} {from_to(span)}",
            tone=tone,
        )
        for span in spans
    ]


def name_of(one: PersonCard) -> str:
    """A person's name, else their number in words."""
    label = one.person.label
    return f"Person {one.person.number}" if label.startswith("<") else label


def _list(store: Store, shown: PeopleView) -> None:
    for one in shown.figures:
        number = one.person.number
        with st.container(border=True, key=f"person_{number}"):
            image, words = st.columns([1, 4])
            with image:
                crop(store, one.crop, name_of(one))
            with words:
                _row(one, here=one == shown.chosen)


def _row(one: PersonCard, *, here: bool) -> None:
    number = one.person.number
    mark = " (shown beside)" if here else ""
    st.markdown(f"**{plain(name_of(one))}**{mark}")
    span = f"{from_to(one.person.span)}, " if one.person.span else ""
    tags = " ".join(tag.strip("<>") for tag in one.person.tags)
    told = f"{span}seen {one.person.seen} times, heard {one.person.heard} times, {tags}"
    st.caption(plain(f"number {number}, {told}"))
    for same in one.person.maybe:
        st.caption(plain(f"may be number {same.number}, which is not sure yet: {same.reason}"))
    if st.button("Open", key=f"open_{number}", help=plain(f"Show {name_of(one)}"), disabled=here):
        address.say(person=number)
        st.rerun()


def crop(store: Store, blob: str | None, name: str) -> None:
    """A face, where there is an image of it."""
    data = image_of(store, blob)
    if data:
        st.image(data, alt=f"Face of {name}", width=90)
    else:
        st.caption("no image")


def _person(store: Store, shown: PeopleView, one: PersonCard) -> None:
    st.subheader(plain(name_of(one)), anchor=False)
    names = [f"{name.name} ({name.source})" for name in one.person.names]
    st.write(plain(", ".join(names)) if names else "No name is known.")
    if one.crops:
        with st.container(horizontal=True, key="crops"):
            for tag, blob in list(one.crops.items())[:12]:
                data = image_of(store, blob)
                if data:
                    st.image(
                        data,
                        caption=tag.strip("<>"),
                        alt=f"{tag.strip('<>')} of {name_of(one)}",
                        width=90,
                    )
    _moments(shown, one)
    show_changes(store, shown, one)


def _moments(shown: PeopleView, one: PersonCard) -> None:
    """The first appearances as buttons, for whoever does not use the timeline."""
    spans = sorted({*one.seen, *one.heard}, key=lambda s: (s.start_ms, s.end_ms))[:6]
    with st.container(horizontal=True, key="moments"):
        for at, span in enumerate(spans):
            st.button(
                f"▶ {hms(span.start_ms)}",
                key=f"moment_{one.person.number}_{at}",
                on_click=seek,
                args=(shown.video.id, span.start_ms),
            )


def _suggestions(store: Store, shown: PeopleView) -> None:
    st.header("Same person?", anchor=False)
    found = likely_same_people(store, shown.video.id, SUGGESTED)
    if not found:
        st.caption("Nobody here looks or sounds so much like somebody else.")
    for pair in found:
        _suggestion(store, shown, pair)


def _first(shown: PeopleView, one: PersonCard, key: str) -> None:
    """Plays the first appearance of a person, by which a voice is known."""
    if one.person.span is not None:
        st.button(
            f"▶ {plain(name_of(one))}",
            key=f"first_{key}_{one.person.number}",
            on_click=seek,
            args=(shown.video.id, one.person.span.start_ms),
        )


def _suggestion(store: Store, shown: PeopleView, pair: CardPair) -> None:
    one, other, found = pair.one, pair.other, pair.found
    key = f"{found.one}_{found.other}"
    with st.container(border=True, key=f"pair_{key}"):
        left, right, words = st.columns([1, 1, 4])
        with left:
            crop(store, one.crop, name_of(one))
        with right:
            crop(store, other.crop, name_of(other))
        with words:
            st.write(plain(f"{name_of(one)} and {name_of(other)}"))
            st.caption(f"alike in {found.kind}, cosine {found.cosine:.2f}")
            with st.container(horizontal=True, key=f"say_{key}"):
                for figure in (one, other):
                    _first(shown, figure, key)
                st.button(
                    "Yes, the same",
                    key=f"yes_{key}",
                    on_click=merged,
                    args=(store, shown.video.id, found.other, found.one),
                )
                st.button(
                    "No",
                    key=f"no_{key}",
                    on_click=told_apart,
                    args=(store, shown.video.id, found.one, found.other),
                )
