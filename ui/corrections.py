"""Forms that correct the people of a video: name, merge, split, forget, undo."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from domain.errors import HomerError
from domain.marked import marked
from domain.media import Video
from domain.people import CharacterRef, Correction, tag_name, tags_in_words
from people.across_videos import rename
from people.corrections import KnownPerson, history, keep_apart, merge, split, undo
from people.forget import Forgotten, forget, restore_forgotten
from store.database import Store
from ui.app_state import page_state
from ui.formatting import escape_markdown
from ui.language import use_language
from ui.media import stored_image
from ui.navigation import set_params
from ui.sign_in import set_acting_user
from views.people_view import PeopleView, PersonCard, PersonEntry, PersonLane
from views.sentences import translate_sentence
from views.translation import translate
from views.words import capitalized, counted, join_words

MAX_PARTS = 24
"""Faces and voices of one person shown in the form that splits them."""
LAST_RESULT = "result of a correction"
SHOWN = "correction shown"
TOAST = """<style>
.st-key-correction_toast { position: fixed; inset-block-end: 1rem; inset-inline-end: 1rem;
  z-index: 1000; width: min(30rem, calc(100vw - 2rem)); padding: .75rem 1rem;
  border: 1px solid var(--st-border-color, currentColor); border-radius: .5rem;
  background: var(--st-background-color, Canvas); box-shadow: 0 4px 16px rgb(0 0 0 / 25%); }
</style>"""
PARTS = {"face": marked("face"), "voice": marked("voice")}
FORGOTTEN_FILE = "file of a forgotten person"


Person = KnownPerson | PersonEntry


LIBRARY = ""
"""In place of a video: the page of the people of the library."""


@dataclass(frozen=True)
class CorrectionResult:
    """What was corrected, in words; ``undoable`` are the numbers that the button Undo undoes.

    ``video``: of these corrections; "": the video of the page.
    """

    message: str
    undoable: tuple[int, ...] = ()
    video: str = ""


def display_name(card: PersonCard | Person | PersonLane) -> str:
    """Return a person's name, or "Person" and the number."""
    entry = card.person if isinstance(card, PersonCard) else card
    return (
        translate("Person {number}").format(number=entry.number)
        if entry.label.startswith("<")
        else entry.label
    )


def show_last_result(store: Store, video: str) -> None:
    """Show the result of the last correction, with Undo; its file can be downloaded.

    Args:
        video: The id of the page's video, or ``LIBRARY``.
    """
    result = st.session_state.pop(LAST_RESULT, None)
    if isinstance(result, HomerError):
        st.error(escape_markdown(translate_sentence(str(result))))
    elif result is not None:
        st.session_state[SHOWN] = (video, result)
    of_video, shown = st.session_state.get(SHOWN, ("", None))
    if of_video == video and shown is not None:
        _show_toast(store, shown.video or video, shown)
    file = st.session_state.get(FORGOTTEN_FILE)
    if file is not None:
        name, data = file
        st.download_button(
            translate("Download the file that restores them"),
            data,
            name,
            "application/zip",
            key="kept",
        )


def _show_toast(store: Store, video: str, result: CorrectionResult) -> None:
    """Show a result above the page until it is closed; Streamlit's own toasts have no buttons."""
    st.html(TOAST)
    with st.container(horizontal=True, vertical_alignment="center", key="correction_toast"):
        st.write(escape_markdown(result.message))
        if result.undoable:
            st.button(
                translate("Undo"),
                key="undo_last",
                help=translate("Undo the last correction"),
                on_click=_undo_corrections,
                args=(store, video, result.undoable),
            )
        st.button(translate("Close"), key="close_toast", type="tertiary", on_click=_close_toast)


def _close_toast() -> None:
    st.session_state.pop(SHOWN, None)


def apply_correction(change: Callable[[], CorrectionResult]) -> None:
    """Apply a correction; its result is shown when the page is drawn again."""
    set_acting_user()
    use_language()
    try:
        st.session_state[LAST_RESULT] = change()
    except HomerError as error:
        st.session_state[LAST_RESULT] = error


def selection_key(video: str, number: int) -> str:
    """Return the key of the box that selects a person."""
    return f"selected_{video}_{number}"


def name_field(store: Store, video: str, card: PersonCard) -> None:
    """Draw the name of a person, which is changed in its place."""
    if not store.may_change:
        st.write(escape_markdown(display_name(card)))
        return
    number, named = card.person.number, bool(card.person.names)
    name = card.person.label if named else ""
    key = f"name_{video}_{number}_{name}"
    st.text_input(
        translate("Name of {name}").format(name=escape_markdown(display_name(card))),
        name,
        key=key,
        placeholder=display_name(card),
        label_visibility="collapsed",
        on_change=_rename,
        args=(store, video, card, key),
    )


def _rename(store: Store, video: str, card: PersonCard, key: str) -> None:
    name = st.session_state[key].strip()
    if not name:
        return

    def change() -> CorrectionResult:
        done = rename(store, video, str(card.person.number), name)
        return CorrectionResult(
            translate("{name} is now called {new}.").format(name=display_name(card), new=name),
            (done.number,),
        )

    apply_correction(change)


def merge_people(store: Store, video: str, people: Sequence[Person], into: Person) -> None:
    """Merge people into one of them, who keeps number and name."""

    def change() -> CorrectionResult:
        done = [merge(store, video, str(one.number), str(into.number)) for one in people]
        merged = join_words([_in_sentence(one) for one in people])
        message = translate("Merged {people} into {person}.").format(
            people=merged, person=_in_sentence(into)
        )
        return CorrectionResult(message, tuple(one.number for one in done))

    apply_correction(change)


def separate_people(store: Store, video: str, one: PersonCard, other: PersonCard) -> None:
    """Record that two people are different, so that they are not suggested again."""

    def change() -> CorrectionResult:
        done = keep_apart(store, video, str(one.person.number), str(other.person.number))
        message = translate("{first} and {second} are two people.").format(
            first=display_name(one), second=_in_sentence(other.person)
        )
        return CorrectionResult(message, (done.number,))

    apply_correction(change)


def show_merge_bar(store: Store, people: PeopleView) -> None:
    """Draw the button that merges the selected people."""
    if not store.may_change:
        return
    video = people.video.id
    chosen = [
        person
        for person in people.people
        if st.session_state.get(selection_key(video, person.number))
    ]
    with st.container(horizontal=True, vertical_alignment="center", key="merge_bar"):
        st.button(
            translate("Merge {people}").format(people=counted(len(chosen), "person"))
            if len(chosen) > 1
            else translate("Merge"),
            type="primary",
            icon=":material/merge:",
            disabled=len(chosen) < 2,
            help=translate("Select at least two people who are one"),
            on_click=_merge_selected,
            args=(store, video, chosen),
        )
        if chosen:
            st.caption(escape_markdown(", ".join(display_name(person) for person in chosen)))


def _merge_selected(store: Store, video: str, chosen: Sequence[PersonEntry]) -> None:
    """Merge people into a named one of them, else into the first."""
    into = next((one for one in chosen if not one.label.startswith("<")), chosen[0])
    others = [one for one in chosen if one != into]
    for one in chosen:
        st.session_state[selection_key(video, one.number)] = False
    merge_people(store, video, others, into)


def _in_sentence(person: Person) -> str:
    name = display_name(person)
    if not person.label.startswith("<"):
        return name
    return translate("person {number}").format(number=person.number)


def show_correction_forms(store: Store, people: PeopleView, card: PersonCard) -> None:
    """Draw the forms that split and forget one person."""
    if not store.may_change:
        return
    if len(card.person.tags) > 1:
        _split_form(store, people.video.id, card)
    _forget_form(store, people.video, card)


def _split_form(store: Store, video: str, card: PersonCard) -> None:
    """Draw the faces and voices of a person, of which some may be another one's."""
    number = card.person.number
    with (
        st.expander(translate("This is more than one person")),
        st.form(f"split_{number}", border=False),
    ):
        st.write(translate("Choose the faces and voices of the other person."))
        with st.container(horizontal=True, key=f"parts_{number}"):
            boxes = {tag: _part_box(store, card, tag) for tag in card.person.tags[:MAX_PARTS]}
        name = st.text_input(translate("Name of that person (optional)"))
        sent = st.form_submit_button(translate("Split"))
    if sent:

        def change() -> CorrectionResult:
            chosen = [tag.strip("<>") for tag, is_chosen in boxes.items() if is_chosen]
            done = split(store, video, str(number), chosen, name)
            message = translate("Split {name} into two people.").format(name=display_name(card))
            return CorrectionResult(message, (done.number,))

        apply_correction(change)
        st.rerun()


def _part_box(store: Store, card: PersonCard, tag: str) -> bool:
    with st.container(width=110, key=f"part_{card.person.number}_{tag.strip('<>')}"):
        data = stored_image(store, card.crops.get(tag))
        if data:
            st.image(
                data,
                alt=translate("{part} of {name}").format(
                    part=_part_name(tag), name=display_name(card)
                ),
                width=90,
            )
        return st.checkbox(capitalized(_part_name(tag)), key=f"split_{tag}_{card.person.number}")


def _part_name(tag: str) -> str:
    """Return ``face 3`` or ``voice 3`` for a tag."""
    kind, _, number = tag_name(tag).partition(" ")
    return f"{translate(PARTS[kind])} {number}" if kind in PARTS else tag_name(tag)


def _forget_form(store: Store, video: Video, card: PersonCard) -> None:
    def forget_here(*, keep_file: bool) -> None:
        apply_correction(lambda: _forget_person(store, video, card, keep_file=keep_file))
        set_params(person=None)

    key = str(card.person.number)
    forget_form(translate("Forget this person"), display_name(card), key, forget_here)


def forget_form(title: str, name: str, key: str, forget_them: Callable[..., None]) -> None:
    """Draw the form that forgets a person; ``forget_them`` is called with ``keep_file``."""
    with st.expander(title, key=f"forget_form_{key}"):
        st.write(
            translate(
                "Their faces, voices, images and names are deleted, with keyframes that show "
                "them and every answer about this video. What they said stays, without a name. "
                "The video file is not touched."
            )
        )
        keep_file = st.checkbox(
            translate("Make a file that can restore them"), value=True, key=f"keep_{key}"
        )
        confirmed = st.checkbox(
            escape_markdown(translate("Yes, forget {name}").format(name=name)), key=f"sure_{key}"
        )
        if st.button(translate("Forget"), disabled=not confirmed, key=f"forget_{key}"):
            with st.spinner(translate("Forgetting ...")):
                forget_them(keep_file=keep_file)
            st.rerun()


def _forget_person(
    store: Store, video: Video, card: PersonCard, *, keep_file: bool
) -> CorrectionResult:
    one = CharacterRef(video=video.id, number=card.person.number)
    with tempfile.TemporaryDirectory() as folder:
        path = undo_file(Path(folder), one) if keep_file else None
        forgotten = forget_character(store, one, path)
        st.session_state[FORGOTTEN_FILE] = (path.name, path.read_bytes()) if path else None
    return CorrectionResult(
        translate("{name} is forgotten: {texts} rewritten, {images} and {answers} deleted.").format(
            name=display_name(card),
            texts=counted(forgotten.rewritten, "text"),
            images=counted(forgotten.images, "image"),
            answers=counted(forgotten.answers, "answer"),
        )
    )


def undo_file(folder: Path, one: CharacterRef) -> Path:
    """Return the path of the file that restores a forgotten character."""
    return folder / f"person-{one.number}-of-{one.video}.zip"


def forget_character(store: Store, one: CharacterRef, path: Path | None) -> Forgotten:
    """Forget a person in one video; see ``people.forget``."""
    # Texts that change get vectors of the kind that the others have.
    text = page_state().toolbox_of(one.video).text
    return forget(store, one.video, str(one.number), text, path)


def show_history(store: Store, video: Video) -> None:
    """List the corrections, each with a button to undo it, and the form to recall a person."""
    if not store.may_change:
        return
    st.header(translate("Corrections"), anchor=False)
    corrections = history(store, video.id)
    if not corrections:
        st.caption(translate("Nothing yet."))
    for correction in reversed(corrections):
        with st.container(
            horizontal=True, vertical_alignment="center", key=f"made_{correction.number}"
        ):
            undone = translate(" (undone)") if correction.undone else ""
            st.write(escape_markdown(f"{_in_words(correction)}{undone}"))
            st.button(
                translate("Undo"),
                key=f"undo_{correction.number}",
                help=translate("Undo correction {number}").format(number=correction.number),
                disabled=correction.undone,
                on_click=_undo_corrections,
                args=(store, video.id, (correction.number,)),
            )
    with st.expander(translate("Restore a forgotten person")):
        file = st.file_uploader(translate("The file made when they were forgotten"), type="zip")
        if file is not None and st.button(translate("Restore")):
            apply_correction(lambda: _recall_person(store, video.id, file.getvalue()))
            st.rerun()


def _in_words(correction: Correction) -> str:
    """Return what a correction did, in the language of the page."""
    return translate_sentence(tags_in_words(correction.told))


def _undo_corrections(store: Store, video: str, numbers: Sequence[int]) -> None:
    """Undo corrections, the last one first: it may depend on those before."""

    def change() -> CorrectionResult:
        undone = [undo(store, video, number) for number in reversed(numbers)]
        listed = "; ".join(_in_words(one) for one in reversed(undone))
        return CorrectionResult(translate("Undone: {listed}.").format(listed=listed))

    _close_toast()
    apply_correction(change)


def _recall_person(store: Store, video: str, data: bytes) -> CorrectionResult:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "person.zip"
        path.write_bytes(data)
        rows = restore_forgotten(store, video, path)
        return CorrectionResult(
            translate("Restored the person, with {records}.").format(
                records=counted(rows, "record")
            )
        )
