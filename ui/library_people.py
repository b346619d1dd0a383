"""The people of the library: who is in several videos, and who may be the same person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import streamlit as st

from domain.media import IdentityKind
from domain.people import LibraryPerson, LikelySame, PersonOfVideo
from domain.words import counted, format_number, format_span, join_words, marked, translate
from library import people as acts
from people.likely_same import accept
from store.database import Store
from ui.corrections import (
    LIBRARY,
    CorrectionResult,
    apply_correction,
    correct,
    display_name,
    forget_form,
    forget_person,
    name_field,
    show_last_result,
)
from ui.formatting import escape_markdown
from ui.media import stored_image
from ui.navigation import int_param, page_link, set_params

PERSONS_PER_PAGE = 12
"""Persons per page."""
MOST_LIKELY = 8
"""Pairs that are suggested at most at a time."""


def show_library_people(store: Store) -> None:
    """Draw the persons of the library, a page at a time, and the pairs that may be one person."""
    show_last_result(store, LIBRARY)
    page = int_param("page", 1) or 1
    found = acts.people_of_library(store, (page - 1) * PERSONS_PER_PAGE, PERSONS_PER_PAGE)
    if not found.items:
        st.write(translate("Nobody is known by name yet, or joined across videos."))
    for person in found.items:
        first, last = person.characters[0], person.last_seen
        key = f"{first.video}_{first.number}"
        name = "" if person.label.startswith("<") else person.label
        shown = name or display_name(first)
        with st.container(border=True, key=f"person_{key}"):
            name_field(store, first, name, shown)
            if last is not None:
                text = (
                    translate("Last seen {time} of {title}")
                    if last.seen
                    else translate("Last heard {time} of {title}")
                ).format(time=format_span(last.span), title=last.title)
                page_link(
                    "video", escape_markdown(text), video=last.video, t=last.span.start_ms // 1000
                )
            with st.container(horizontal=True, key=f"videos_{key}"):
                for one in person.characters:
                    _show_character(store, one, joined=len(person.characters) > 1)
            if store.may_change:
                title = translate("Forget this person in all their videos")
                forget_form(title, shown, key, partial(_forget, person, shown))
    with st.container(horizontal=True, key="pages"):
        _page_button(translate("Previous"), page - 1, disabled=page == 1)
        _page_button(translate("Next"), page + 1, disabled=found.next is None)
    if not store.may_change:
        return
    st.header(translate("Same person?"), anchor=False)
    pairs = acts.likely_same_people(store, limit=MOST_LIKELY)
    if not pairs:
        st.caption(translate("No likely pairs in different videos."))
        return
    sure = [pair for pair in pairs if pair.sure]
    st.button(
        translate("Join {pairs}").format(pairs=counted(len(sure), "sure pair")),
        disabled=not sure,
        help=translate("Join the pairs that are far above the threshold of their model"),
        on_click=_join_sure,
        args=(store, [pair.one.video for pair in sure]),
    )
    for pair in pairs:
        _show_pair(store, pair)


def show_crop(store: Store, blob: str | None, name: str) -> None:
    """Draw a crop of a face, if there is one."""
    data = stored_image(store, blob)
    if data:
        st.image(data, alt=translate("Face of {name}").format(name=name), width=110)
    else:
        st.caption(translate("Only heard"))


def _page_button(label: str, page: int, *, disabled: bool) -> None:
    if st.button(label, disabled=disabled, key=f"page_{page}"):
        set_params(page=page if page > 1 else None)
        st.rerun()


def _forget(person: LibraryPerson, shown: str, *, keep_file: bool) -> None:
    """Forget a person in all their videos, and offer one file that has what restores them."""

    def change() -> CorrectionResult:
        forget_person(person.characters[0], keep_file=keep_file, everywhere=True)
        titles = join_words([one.title for one in person.characters])
        message = translate("{name} is forgotten in {titles}.").format(name=shown, titles=titles)
        return CorrectionResult(message)

    apply_correction(change)


def _show_character(store: Store, one: PersonOfVideo, *, joined: bool) -> None:
    key = f"{one.video}_{one.number}"
    name = display_name(one)
    with st.container(width=180, key=f"in_{key}"):
        show_crop(store, one.crop, name)
        page_link("people", escape_markdown(one.title), video=one.video, person=one.number)
        if joined and store.may_change:
            st.button(
                translate("Somebody else"),
                key=f"split_{key}",
                help=translate("Split this person off those of the other videos"),
                on_click=partial(
                    correct,
                    lambda: acts.split_person(store, one.video, str(one.number)),
                    marked("{name} of {title} is somebody else."),
                    name=name,
                    title=one.title,
                ),
            )


def _show_pair(store: Store, pair: LikelySame[PersonOfVideo]) -> None:
    one, other = pair.one, pair.other
    both = translate("{name} in {title} and {other} in {other_title}").format(
        name=display_name(one),
        title=one.title,
        other=display_name(other),
        other_title=other.title,
    )
    with likely_pair(store, pair, both) as key:
        for person in (one, other):
            if person.last_seen is not None:
                at = person.last_seen.span.start_ms // 1000
                page_link("video", escape_markdown(f"▶ {person.title}"), video=person.video, t=at)
        numbers = str(one.number), str(other.number)
        st.button(
            translate("Yes, the same"),
            key=f"yes_{key}",
            on_click=partial(
                correct, lambda: accept(store, pair), marked("{both} are one person."), both=both
            ),
        )
        st.button(
            translate("No"),
            key=f"no_{key}",
            on_click=partial(
                correct,
                lambda: acts.keep_people_apart(
                    store, one.video, numbers[0], numbers[1], other.video
                ),
                marked("{both} are two people."),
                both=both,
            ),
        )


@contextmanager
def likely_pair(store: Store, pair: LikelySame[PersonOfVideo], both: str) -> Iterator[str]:
    """Draw two who may be one person; what is drawn in the block stands below. Yields a key."""
    one, other = pair.one, pair.other
    key = f"{one.video}_{one.number}_{other.video}_{other.number}"
    with st.container(border=True, key=f"pair_{key}"):
        left, right, text = st.columns([1, 1, 4])
        for column, person in ((left, one), (right, other)):
            with column:
                show_crop(store, person.crop, display_name(person))
        with text:
            st.write(escape_markdown(both))
            share = format_number(pair.cosine, ".0%")
            alike = (
                translate("They look alike: {share}")
                if pair.kind is IdentityKind.FACE
                else translate("They sound alike: {share}")
            ).format(share=share)
            sure = translate(", sure") if pair.sure else ""
            st.caption(f"{alike}{sure}")
            with st.container(horizontal=True, key=f"say_{key}"):
                yield key


def _join_sure(store: Store, videos: Sequence[str]) -> None:
    def change() -> CorrectionResult:
        done = [
            one for video in dict.fromkeys(videos) for one in acts.join_sure_people(store, video)
        ]
        joined = counted(len(done), "pair")
        return CorrectionResult(translate("Joined {pairs}.").format(pairs=joined))

    apply_correction(change)
