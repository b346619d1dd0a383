"""What a person says about the people of a video: name, merge, split, forget, take back."""

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
from ui import address
from ui.app_state import page_desk
from ui.signed_in import act_as_signed_in
from ui.words import plain
from views.people_view import PeopleView, PersonCard, PersonEntry

LAST = "told of a change"
KEPT = "kept of the forgotten"


def told_last() -> None:
    """What came of the change that was made last, once."""
    told = st.session_state.pop(LAST, None)
    if told is not None:
        good, words = told
        (st.success if good else st.error)(plain(words))
    kept = st.session_state.get(KEPT)
    if kept is not None:
        name, data = kept
        st.download_button(
            "Download the file that brings them back", data, name, "application/zip", key="kept"
        )


def _do(change: Callable[[], str]) -> None:
    """Makes a change; what came of it is told when the page is drawn again."""
    act_as_signed_in()
    try:
        st.session_state[LAST] = (True, change())
    except HomerError as error:
        st.session_state[LAST] = (False, str(error))


def merged(store: Store, video: str, number: int, into: int) -> None:
    """Two are one person, who keeps the number ``into``."""
    _do(lambda: f"Merged: {merge(store, video, str(number), str(into)).told}.")


def told_apart(store: Store, video: str, number: int, other: int) -> None:
    """Two are two people, and suggested as one no more."""
    _do(lambda: f"Kept: {keep_apart(store, video, str(number), str(other)).told}.")


def show_changes(store: Store, shown: PeopleView, one: PersonCard) -> None:
    """The forms about one person."""
    video, number = shown.video.id, one.person.number
    with st.form(f"name_{number}"):
        name = st.text_input("Name", one.person.label if one.person.names else "")
        if st.form_submit_button("Give this name"):
            _do(lambda: f"Named: {rename(store, video, str(number), name).told}.")
            st.rerun()
    _merge(store, shown, one)
    if len(one.person.tags) > 1:
        _split(store, video, one)
    _forget(store, shown.video, one)


def _named(one: PersonEntry | KnownPerson) -> str:
    return f"{one.number}" + ("" if one.label.startswith("<") else f" ({one.label})")


def _merge(store: Store, shown: PeopleView, one: PersonCard) -> None:
    others = {o.number: _named(o) for o in shown.people if o.number != one.person.number}
    if not others:
        return
    with st.form(f"merge_{one.person.number}"):
        into = st.selectbox("Is really", list(others), format_func=lambda n: others[n])
        if st.form_submit_button("Merge"):
            merged(store, shown.video.id, one.person.number, into)
            address.say(person=into)
            st.rerun()


def _split(store: Store, video: str, one: PersonCard) -> None:
    number = one.person.number
    tags = [tag.strip("<>") for tag in one.person.tags]
    with st.form(f"split_{number}"):
        gone = st.multiselect("Faces and voices of somebody else", tags)
        name = st.text_input("Who that is (may be left empty)")
        if st.form_submit_button("Split"):
            _do(lambda: f"Split: {split(store, video, str(number), gone, name).told}.")
            st.rerun()


def _forget(store: Store, video: Video, one: PersonCard) -> None:
    with st.expander("Forget this person"):
        st.write(
            "Their faces, voices, images and names go, and so do keyframes with them in view and "
            "every answer about this video. What they said stays as somebody's. The video file is "
            "not touched."
        )
        keep = st.checkbox("Give me a file that can bring them back", value=True)
        sure = st.checkbox(
            plain(f"Yes, forget {_named(one.person)}"), key=f"sure_{one.person.number}"
        )
        if st.button("Forget", disabled=not sure, key=f"forget_{one.person.number}"):
            with st.spinner("Forgetting ..."):
                _do(lambda: _forgotten(store, video, one, keep=keep))
            address.say(person=None)
            st.rerun()


def _forgotten(store: Store, video: Video, one: PersonCard, *, keep: bool) -> str:
    embedder = page_desk().toolbox(video.profile).text
    with tempfile.TemporaryDirectory() as folder:
        number = one.person.number
        path = Path(folder) / f"person-{number}-of-{video.id}.zip" if keep else None
        done = forget(store, video.id, str(number), embedder, path)
        st.session_state[KEPT] = (path.name, path.read_bytes()) if path else None
    return (
        f"{done.number} is forgotten: {done.rewritten} texts written anew, {done.images} images "
        f"and {done.answers} answers gone."
    )


def show_bulk(store: Store, shown: PeopleView) -> None:
    """Several people at once."""
    st.header("Several at once", anchor=False)
    named = {one.number: _named(one) for one in shown.people}
    with st.form("bulk"):
        chosen = st.multiselect("People", list(named), format_func=lambda n: named[n])
        if st.form_submit_button("They are all one person"):
            _do(lambda: _all_one(store, shown.video.id, chosen))
            st.rerun()


def _all_one(store: Store, video: str, numbers: Sequence[int]) -> str:
    if len(numbers) < 2:
        return "Choose at least two people."
    for number in numbers[1:]:
        merge(store, video, str(number), str(numbers[0]))
    return f"{len(numbers)} people are one now: number {numbers[0]}."


def show_history(store: Store, video: Video) -> None:
    """What was said so far, and taking it back."""
    st.header("What was corrected", anchor=False)
    made = history(store, video.id)
    if not made:
        st.caption("Nothing yet.")
    for one in reversed(made):
        with st.container(horizontal=True, vertical_alignment="center", key=f"made_{one.number}"):
            state = "taken back" if one.undone else "in force"
            st.write(plain(f"{one.number}. {one.kind}: {one.told} ({state})"))
            st.button(
                "Take back",
                key=f"undo_{one.number}",
                help=f"Take back correction {one.number}",
                disabled=one.undone,
                on_click=_undone,
                args=(store, video.id, one.number),
            )
    with st.expander("Bring back somebody who was forgotten"):
        file = st.file_uploader("The file that was kept", type="zip")
        if file is not None and st.button("Bring back"):
            _do(lambda: _recalled(store, video.id, file.getvalue()))
            st.rerun()


def _undone(store: Store, video: str, number: int) -> None:
    _do(lambda: f"Taken back: {undo(store, video, number).told}.")


def _recalled(store: Store, video: str, data: bytes) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kept.zip"
        path.write_bytes(data)
        return f"All is as it was: {restore_forgotten(store, video, path)} rows came back."
