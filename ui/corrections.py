"""Forms that correct the people of a video: name, merge, split, forget, undo."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from domain.errors import HomerError
from domain.media import Video
from people.corrections import KnownPerson, history, keep_apart, merge, rename, split, undo
from people.forget import forget, restore_forgotten
from store.database import Store
from ui.app_state import page_state
from ui.formatting import escape_markdown
from ui.navigation import set_params
from ui.sign_in import set_acting_user
from views.people_view import PeopleView, PersonCard, PersonEntry

LAST_RESULT = "result of a correction"
FORGOTTEN_FILE = "file of a forgotten person"


def show_last_result() -> None:
    """Show the result of the last correction once, and its file for download."""
    result = st.session_state.pop(LAST_RESULT, None)
    if result is not None:
        succeeded, message = result
        (st.success if succeeded else st.error)(escape_markdown(message))
    file = st.session_state.get(FORGOTTEN_FILE)
    if file is not None:
        name, data = file
        st.download_button(
            "Download the file that restores them", data, name, "application/zip", key="kept"
        )


def _apply(change: Callable[[], str]) -> None:
    """Apply a correction; its result is shown when the page is drawn again."""
    set_acting_user()
    try:
        st.session_state[LAST_RESULT] = (True, change())
    except HomerError as error:
        st.session_state[LAST_RESULT] = (False, str(error))


def merge_people(store: Store, video: str, number: int, into: int) -> None:
    """Merge two people; the merged person has the number ``into``."""
    _apply(lambda: f"Merged: {merge(store, video, str(number), str(into)).told}.")


def separate_people(store: Store, video: str, number: int, other: int) -> None:
    """Record that two people are different, so that they are not suggested again."""
    _apply(lambda: f"Kept: {keep_apart(store, video, str(number), str(other)).told}.")


def show_correction_forms(store: Store, people: PeopleView, card: PersonCard) -> None:
    """Draw the correction forms of one person."""
    video, number = people.video.id, card.person.number
    with st.form(f"name_{number}"):
        name = st.text_input("Name", card.person.label if card.person.names else "")
        if st.form_submit_button("Save the name"):
            _apply(lambda: f"Named: {rename(store, video, str(number), name).told}.")
            st.rerun()
    _merge_form(store, people, card)
    if len(card.person.tags) > 1:
        _split_form(store, video, card)
    _forget_form(store, people.video, card)


def _describe(person: PersonEntry | KnownPerson) -> str:
    return f"{person.number}" + ("" if person.label.startswith("<") else f" ({person.label})")


def _merge_form(store: Store, people: PeopleView, card: PersonCard) -> None:
    others = {
        other.number: _describe(other)
        for other in people.people
        if other.number != card.person.number
    }
    if not others:
        return
    with st.form(f"merge_{card.person.number}"):
        into = st.selectbox("Same person as", list(others), format_func=lambda n: others[n])
        if st.form_submit_button("Merge"):
            merge_people(store, people.video.id, card.person.number, into)
            set_params(person=into)
            st.rerun()


def _split_form(store: Store, video: str, card: PersonCard) -> None:
    number = card.person.number
    tags = [tag.strip("<>") for tag in card.person.tags]
    with st.form(f"split_{number}"):
        other_tags = st.multiselect("Faces and voices of another person", tags)
        name = st.text_input("Name of that person (optional)")
        if st.form_submit_button("Split"):
            _apply(lambda: f"Split: {split(store, video, str(number), other_tags, name).told}.")
            st.rerun()


def _forget_form(store: Store, video: Video, card: PersonCard) -> None:
    with st.expander("Forget this person"):
        st.write(
            "Their faces, voices, images and names are deleted, with keyframes that show them "
            "and every answer about this video. What they said stays, without a name. The "
            "video file is not touched."
        )
        keep_file = st.checkbox("Make a file that can restore them", value=True)
        confirmed = st.checkbox(
            escape_markdown(f"Yes, forget {_describe(card.person)}"),
            key=f"sure_{card.person.number}",
        )
        if st.button("Forget", disabled=not confirmed, key=f"forget_{card.person.number}"):
            with st.spinner("Forgetting ..."):
                _apply(lambda: _forget_person(store, video, card, keep_file=keep_file))
            set_params(person=None)
            st.rerun()


def _forget_person(store: Store, video: Video, card: PersonCard, *, keep_file: bool) -> str:
    embedder = page_state().toolbox(video.profile).text
    with tempfile.TemporaryDirectory() as folder:
        number = card.person.number
        path = Path(folder) / f"person-{number}-of-{video.id}.zip" if keep_file else None
        forgotten = forget(store, video.id, str(number), embedder, path)
        st.session_state[FORGOTTEN_FILE] = (path.name, path.read_bytes()) if path else None
    return (
        f"{forgotten.number} is forgotten: {forgotten.rewritten} texts rewritten, "
        f"{forgotten.images} images and {forgotten.answers} answers deleted."
    )


def show_bulk_form(store: Store, people: PeopleView) -> None:
    """Draw the form that merges several people."""
    st.header("Merge several people", anchor=False)
    labels = {person.number: _describe(person) for person in people.people}
    with st.form("bulk"):
        chosen = st.multiselect("People", list(labels), format_func=lambda n: labels[n])
        if st.form_submit_button("Merge all of them"):
            _apply(lambda: _merge_all(store, people.video.id, chosen))
            st.rerun()


def _merge_all(store: Store, video: str, numbers: Sequence[int]) -> str:
    if len(numbers) < 2:
        return "Choose at least two people."
    for number in numbers[1:]:
        merge(store, video, str(number), str(numbers[0]))
    return f"{len(numbers)} people are merged into number {numbers[0]}."


def show_history(store: Store, video: Video) -> None:
    """List the corrections, each with a button to undo it, and the form to recall a person."""
    st.header("Corrections", anchor=False)
    corrections = history(store, video.id)
    if not corrections:
        st.caption("Nothing yet.")
    for correction in reversed(corrections):
        with st.container(
            horizontal=True, vertical_alignment="center", key=f"made_{correction.number}"
        ):
            state = "undone" if correction.undone else "active"
            st.write(
                escape_markdown(
                    f"{correction.number}. {correction.kind}: {correction.told} ({state})"
                )
            )
            st.button(
                "Undo",
                key=f"undo_{correction.number}",
                help=f"Undo correction {correction.number}",
                disabled=correction.undone,
                on_click=_undo_correction,
                args=(store, video.id, correction.number),
            )
    with st.expander("Restore a forgotten person"):
        file = st.file_uploader("The file made when they were forgotten", type="zip")
        if file is not None and st.button("Restore"):
            _apply(lambda: _recall_person(store, video.id, file.getvalue()))
            st.rerun()


def _undo_correction(store: Store, video: str, number: int) -> None:
    _apply(lambda: f"Undone: {undo(store, video, number).told}.")


def _recall_person(store: Store, video: str, data: bytes) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "person.zip"
        path.write_bytes(data)
        return f"Restored: {restore_forgotten(store, video, path)} rows."
