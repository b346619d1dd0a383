"""The people of the library: who is in several videos, and who may be the same person."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from zipfile import ZipFile

import streamlit as st

from domain.media import IdentityKind
from domain.people import Correction
from people import across_videos
from people.across_videos import keep_apart, split_off
from people.likely_same import accept, join_sure
from store.database import Store
from ui.corrections import (
    FORGOTTEN_FILE,
    LIBRARY,
    CorrectionResult,
    apply_correction,
    display_name,
    forget_character,
    forget_form,
    show_last_result,
    undo_file,
)
from ui.formatting import escape_markdown
from ui.language import use_language
from ui.media import stored_image
from ui.navigation import int_param, page_link, set_params
from views.persons_view import (
    CharacterCard,
    LibraryPerson,
    LikelyCards,
    likely_across_videos,
    load_library_people,
    load_person,
)
from views.translation import format_number, translate
from views.words import counted, format_span, join_words

PERSONS_PER_PAGE = 12
"""Persons per page."""
MOST_LIKELY = 8
"""Pairs that are suggested at most at a time."""


def show_library_people(store: Store) -> None:
    """Draw the persons of the library, a page at a time, and the pairs that may be one person."""
    show_last_result(store, LIBRARY)
    page = int_param("page", 1) or 1
    found = load_library_people(store, (page - 1) * PERSONS_PER_PAGE, PERSONS_PER_PAGE)
    if not found.persons:
        st.write(translate("Nobody is known by name yet, or joined across videos."))
    for person in found.persons:
        _show_person(store, person)
    with st.container(horizontal=True, key="pages"):
        _page_button(translate("Previous"), page - 1, disabled=page == 1)
        _page_button(translate("Next"), page + 1, disabled=not found.more)
    _show_likely(store)


def show_other_videos(store: Store, video: str, number: int) -> None:
    """List the other videos in which a person is, with links."""
    person = load_person(store, video, str(number))
    others = [card for card in person.characters if card.ref.video != video]
    if others:
        st.caption(translate("The same person"))
    for card in others:
        label = translate("{name} in {title}").format(name=_name(card), title=card.title)
        page_link("people", escape_markdown(label), video=card.video, person=card.person.number)


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


def _show_person(store: Store, person: LibraryPerson) -> None:
    first = person.characters[0]
    key = f"{first.video}_{first.person.number}"
    with st.container(border=True, key=f"person_{key}"):
        _name_field(store, person, key)
        last = person.last
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
            for card in person.characters:
                _show_character(store, card, joined=len(person.characters) > 1)
        if store.may_change:
            name = _shown_name(person)
            title = translate("Forget this person in all their videos")
            forget_form(title, name, key, partial(_forget, store, person))


def _shown_name(person: LibraryPerson) -> str:
    return _name(person.characters[0]) if person.label.startswith("<") else person.label


def _forget(store: Store, person: LibraryPerson, *, keep_file: bool) -> None:
    """Forget a person in all their videos, and offer one file that has what restores them."""

    def change() -> CorrectionResult:
        packed = io.BytesIO()
        try:
            with tempfile.TemporaryDirectory() as folder, ZipFile(packed, "w") as archive:
                for card in person.characters:
                    path = undo_file(Path(folder), card.ref) if keep_file else None
                    forget_character(store, card.ref, path)
                    if path is not None:
                        archive.write(path, path.name)
        finally:
            # Where one video fails, what restores the person in the others is not lost.
            file = ("forgotten-person.zip", packed.getvalue()) if keep_file else None
            st.session_state[FORGOTTEN_FILE] = file
        name = _shown_name(person)
        titles = join_words([card.title for card in person.characters])
        message = translate("{name} is forgotten in {titles}.").format(name=name, titles=titles)
        return CorrectionResult(message)

    apply_correction(change)


def _show_character(store: Store, card: CharacterCard, *, joined: bool) -> None:
    key = f"{card.video}_{card.person.number}"
    with st.container(width=180, key=f"in_{key}"):
        show_crop(store, card.crop, _name(card))
        page_link(
            "people", escape_markdown(card.title), video=card.video, person=card.person.number
        )
        if joined and store.may_change:
            st.button(
                translate("Somebody else"),
                key=f"split_{key}",
                help=translate("Split this person off those of the other videos"),
                on_click=_correct,
                args=(
                    card.video,
                    lambda: split_off(store, card.video, str(card.person.number)),
                    translate("{name} of {title} is somebody else.").format(
                        name=_name(card), title=card.title
                    ),
                ),
            )


def _name_field(store: Store, person: LibraryPerson, key: str) -> None:
    """Draw the name of a person, which is changed in all their videos."""
    first = person.characters[0]
    name = "" if person.label.startswith("<") else person.label
    shown = _shown_name(person)
    if not store.may_change:
        st.write(escape_markdown(shown))
        return
    field = f"name_{key}_{name}"

    def rename() -> None:
        use_language()
        new = st.session_state[field].strip()
        if new:
            number = str(first.person.number)
            _correct(
                first.video,
                lambda: across_videos.rename(store, first.video, number, new),
                translate("{name} is now called {new}.").format(name=shown, new=new),
            )

    st.text_input(
        translate("Name of {name}").format(name=escape_markdown(shown)),
        name,
        key=field,
        placeholder=_name(first),
        label_visibility="collapsed",
        on_change=rename,
    )


def _show_likely(store: Store) -> None:
    if not store.may_change:
        return
    st.header(translate("Same person?"), anchor=False)
    pairs = likely_across_videos(store, limit=MOST_LIKELY)
    if not pairs:
        st.caption(translate("No likely pairs in different videos."))
        return
    sure = [pair for pair in pairs if pair.found.sure]
    st.button(
        translate("Join {pairs}").format(pairs=counted(len(sure), "sure pair")),
        disabled=not sure,
        help=translate("Join the pairs that are far above the threshold of their model"),
        on_click=_join_sure,
        args=(store, sure),
    )
    for pair in pairs:
        _show_pair(store, pair)


def _show_pair(store: Store, pair: LikelyCards) -> None:
    one, other, found = pair.one, pair.other, pair.found
    key = "_".join(f"{card.video}_{card.person.number}" for card in (one, other))
    with st.container(border=True, key=f"pair_{key}"):
        left, right, text = st.columns([1, 1, 4])
        for column, card in ((left, one), (right, other)):
            with column:
                show_crop(store, card.crop, _name(card))
        with text:
            st.write(escape_markdown(_both(one, other)))
            sure = translate(", sure") if found.sure else ""
            st.caption(f"{alike_line(found.kind, found.cosine)}{sure}")
            _pair_buttons(store, pair, key)


def alike_line(kind: IdentityKind, likeness: float) -> str:
    """Return how much two faces or voices are alike, as a sentence."""
    share = format_number(likeness, ".0%")
    if kind is IdentityKind.FACE:
        return translate("They look alike: {share}").format(share=share)
    return translate("They sound alike: {share}").format(share=share)


def _both(one: CharacterCard, other: CharacterCard) -> str:
    return translate("{name} in {title} and {other} in {other_title}").format(
        name=_name(one), title=one.title, other=_name(other), other_title=other.title
    )


def _pair_buttons(store: Store, pair: LikelyCards, key: str) -> None:
    one, other = pair.one, pair.other
    numbers = str(one.person.number), str(other.person.number)
    both = _both(one, other)
    with st.container(horizontal=True, key=f"say_{key}"):
        for card in (one, other):
            if card.last is not None:
                at = card.last.span.start_ms // 1000
                page_link("video", escape_markdown(f"▶ {card.title}"), video=card.video, t=at)
        st.button(
            translate("Yes, the same"),
            key=f"yes_{key}",
            on_click=_correct,
            args=(
                one.video,
                lambda: accept(store, pair.found),
                translate("{both} are one person.").format(both=both),
            ),
        )
        st.button(
            translate("No"),
            key=f"no_{key}",
            on_click=_correct,
            args=(
                one.video,
                lambda: keep_apart(store, one.video, numbers[0], other.video, numbers[1]),
                translate("{both} are two people.").format(both=both),
            ),
        )


def _correct(video: str, change: Callable[[], Correction], message: str) -> None:
    """Apply a correction of several videos; Undo is by its number in ``video``."""
    apply_correction(lambda: CorrectionResult(message, (change().number,), video))


def _join_sure(store: Store, pairs: list[LikelyCards]) -> None:
    def change() -> CorrectionResult:
        videos = dict.fromkeys(pair.one.video for pair in pairs)
        done = [made for video in videos for made in join_sure(store, video)]
        return CorrectionResult(
            translate("Joined {pairs}.").format(pairs=counted(len(done), "pair"))
        )

    apply_correction(change)


def _name(card: CharacterCard) -> str:
    return display_name(card.person)
