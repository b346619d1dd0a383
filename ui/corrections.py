"""Forms that correct the people of a video: name, merge, split, forget, undo."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from domain.errors import HomerError, InputError
from domain.media import Video
from domain.people import Correction, Forgotten, PersonOfVideo, tag_name, tags_in_words
from domain.time import TimeSpan, parse_clock
from domain.words import (
    capitalized,
    counted,
    format_span,
    join_words,
    marked,
    translate,
    translate_sentence,
)
from flows.removal import delete_video_span, preview_span_deletion
from flows.workspace import Workspace
from library import people as acts
from memory.delete_span import list_deleted_spans
from store.database import Store
from ui.app_state import PageState, page_state, show_errors
from ui.formatting import escape_markdown
from ui.language import use_language
from ui.media import stored_image
from ui.player import Lane, TimelineBar
from ui.sign_in import set_acting_user

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


def display_name(person: PersonOfVideo) -> str:
    return (
        translate("Person {number}").format(number=person.number)
        if person.label.startswith("<")
        else person.label
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
    # It stays until it is closed, on the page of its video only.
    of_video, shown = st.session_state.get(SHOWN, ("", None))
    if of_video == video and shown is not None:
        # Above the page until it is closed: Streamlit's own toasts have no buttons.
        st.html(TOAST)
        with st.container(horizontal=True, vertical_alignment="center", key="correction_toast"):
            st.write(escape_markdown(shown.message))
            if shown.undoable:
                st.button(
                    translate("Undo"),
                    key="undo_last",
                    help=translate("Undo the last correction"),
                    on_click=_undo_corrections,
                    args=(store, shown.video or video, shown.undoable),
                )
            st.button(translate("Close"), key="close_toast", type="tertiary", on_click=_close_toast)
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
    return f"selected_{video}_{number}"


def name_field(store: Store, person: PersonOfVideo, name: str, shown: str) -> None:
    """Draw the name of a person, which is changed in its place.

    Args:
        name: The name; "": there is none.
        shown: How the person is called on the page.
    """
    if not store.may_change:
        st.write(escape_markdown(shown))
        return
    # Under another name it is another field: what was typed does not stay in it.
    key = f"name_{person.video}_{person.number}_{name}"

    def rename() -> None:
        new = st.session_state[key].strip()
        if new:
            correct(
                lambda: acts.rename_person(store, person.video, str(person.number), new),
                marked("{name} is now called {new}."),
                name=shown,
                new=new,
            )

    st.text_input(
        translate("Name of {name}").format(name=escape_markdown(shown)),
        name,
        key=key,
        placeholder=display_name(person),
        label_visibility="collapsed",
        on_change=rename,
    )


def correct(change: Callable[[], Correction], message: str, **words: str) -> None:
    """Apply one correction; then a sentence, in which ``words`` stand, is shown with Undo."""

    def changed() -> CorrectionResult:
        made = change()
        told = translate(message).format(**words)
        return CorrectionResult(told, (made.number,), made.video)

    apply_correction(changed)


def merge_people(
    store: Store, video: str, people: Sequence[PersonOfVideo], into: PersonOfVideo
) -> None:
    """Merge people into one of them, who keeps number and name."""

    def change() -> CorrectionResult:
        done = [
            acts.merge_people(store, video, str(one.number), str(into.number)) for one in people
        ]
        merged = join_words([in_sentence(one) for one in people])
        message = translate("Merged {people} into {person}.").format(
            people=merged, person=in_sentence(into)
        )
        return CorrectionResult(message, tuple(one.number for one in done))

    apply_correction(change)


def show_merge_bar(store: Store, video: str, people: Sequence[PersonOfVideo]) -> None:
    """Draw the button that merges those of these people who are selected."""
    if not store.may_change:
        return
    chosen = [one for one in people if st.session_state.get(selection_key(video, one.number))]
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


def _merge_selected(store: Store, video: str, chosen: Sequence[PersonOfVideo]) -> None:
    """Merge people into a named one of them, else into the first."""
    into = next((one for one in chosen if not one.label.startswith("<")), chosen[0])
    others = [one for one in chosen if one != into]
    for one in chosen:
        st.session_state[selection_key(video, one.number)] = False
    merge_people(store, video, others, into)


def in_sentence(person: PersonOfVideo) -> str:
    """Return a person's name, or "person" and the number, within a sentence."""
    if not person.label.startswith("<"):
        return person.label
    return translate("person {number}").format(number=person.number)


def show_split_form(store: Store, person: PersonOfVideo) -> None:
    """Draw the faces and voices of a person, of which some may be another one's."""
    number = person.number
    with (
        st.expander(translate("This is more than one person")),
        st.form(f"split_{number}", border=False),
    ):
        st.write(translate("Choose the faces and voices of the other person."))
        with st.container(horizontal=True, key=f"parts_{number}"):
            boxes = {}
            for tag in person.tags[:MAX_PARTS]:
                with st.container(width=110, key=f"part_{person.number}_{tag.strip('<>')}"):
                    data = stored_image(store, person.crops.get(tag))
                    if data:
                        st.image(
                            data,
                            alt=translate("{part} of {name}").format(
                                part=_part_name(tag), name=display_name(person)
                            ),
                            width=90,
                        )
                    boxes[tag] = st.checkbox(
                        capitalized(_part_name(tag)), key=f"split_{tag}_{person.number}"
                    )
        name = st.text_input(translate("Name of that person (optional)"))
        sent = st.form_submit_button(translate("Split"))
    if sent:
        chosen = tuple(tag.strip("<>") for tag, is_chosen in boxes.items() if is_chosen)
        correct(
            # Without a tag they would be split off those of other videos.
            lambda: acts.split_person(store, person.video, str(number), chosen or ("",), name),
            marked("Split {name} into two people."),
            name=display_name(person),
        )
        st.rerun()


def _part_name(tag: str) -> str:
    """Return ``face 3`` or ``voice 3`` for a tag."""
    kind, _, number = tag_name(tag).partition(" ")
    return f"{translate(PARTS[kind])} {number}" if kind in PARTS else tag_name(tag)


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


def forget_person(
    person: PersonOfVideo, *, keep_file: bool, everywhere: bool = False
) -> list[Forgotten]:
    """Forget a person, and offer a file that restores them: of several videos, a file of files."""
    name = acts.undo_name(person.ref)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("forgotten-person" if everywhere else name)
        try:
            kept_in, number = path if keep_file else None, str(person.number)
            workspace = page_state().workspace()
            return acts.forget_person(workspace, person.video, number, everywhere, kept_in)
        finally:
            # Where one video fails, what restores the person in the others is not lost.
            if path.is_dir():
                path = Path(shutil.make_archive(str(path), "zip", path))
            file = (path.name, path.read_bytes()) if path.exists() else None
            st.session_state[FORGOTTEN_FILE] = file


def show_history(store: Store, video: Video) -> None:
    """List the corrections, each with a button to undo it, and the form to recall a person."""
    if not store.may_change:
        return
    st.header(translate("Corrections"), anchor=False)
    corrections = acts.people_history(store, video.id)
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
        undone = [acts.undo_people(store, video, number) for number in reversed(numbers)]
        listed = "; ".join(
            _in_words(one) for one in reversed(undone) if isinstance(one, Correction)
        )
        return CorrectionResult(translate("Undone: {listed}.").format(listed=listed))

    _close_toast()
    apply_correction(change)


def _recall_person(store: Store, video: str, data: bytes) -> CorrectionResult:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "person.zip"
        path.write_bytes(data)
        return CorrectionResult(
            translate_sentence(str(acts.undo_people(store, video, source=path)))
        )


# Delete a time span of a video, and show deleted spans on its timeline.

TONE = "third"
_REQUESTED, _RESULT = "span_requested", "span_deleted"


def deleted_lane(store: Store, video: Video) -> list[Lane]:
    """Return the deleted spans of a video as one lane; empty where nothing was deleted."""
    spans = list_deleted_spans(store, video.id)
    bars = [
        TimelineBar(
            f"gap{n}",
            span.start_ms,
            span.end_ms,
            translate("{time} was deleted").format(time=format_span(span)),
            "deleted",
            TONE,
        )
        for n, span in enumerate(spans)
    ]
    return [Lane(translate("Deleted"), bars)] if bars else []


def show_span_deletion(state: PageState, video: Video) -> None:
    """Ask for a span, show what would be deleted, and delete it once confirmed."""
    result = st.session_state.pop(_RESULT, "")
    if result:
        st.success(escape_markdown(result))
    with (
        st.expander(
            translate("Delete a part of this video"), expanded=_REQUESTED in st.session_state
        ),
        st.form("part", border=False),
    ):
        begin = st.text_input(translate("From"), placeholder="12:00")
        end = st.text_input(translate("To"), placeholder="14:30")
        if st.form_submit_button(translate("Delete this part")):
            st.session_state[_REQUESTED] = (video.id, begin or "", end or "")
    requested = st.session_state.get(_REQUESTED)
    if requested and requested[0] == video.id:
        with show_errors():
            try:
                start, stop = parse_clock(requested[1]), parse_clock(requested[2])
            except ValueError as error:
                raise InputError(str(error)) from error
            if stop <= start:
                raise InputError(translate("the part must end after it begins"))
            _confirm(state, video, TimeSpan.of(start, stop))


def _confirm(state: PageState, video: Video, span: TimeSpan) -> None:
    preview = preview_span_deletion(state.store, video.id, span)
    cut = preview.cut
    clips = counted(len(cut.clips), "whole clip")
    st.warning(
        escape_markdown(
            translate(
                "This deletes {time}: {clips} with all that was remembered of them, and every "
                "answer that used any of it. It cannot be undone. {file}"
            ).format(time=format_span(cut.span), clips=clips, file=preview.file)
        )
    )
    with st.container(horizontal=True, key="sure_part"):
        if st.button(translate("Yes, delete this part"), type="primary"):
            toolbox = state.toolbox(video.profile)
            workspace = Workspace(state.store.home, state.store, toolbox.profile, toolbox)
            deleted = delete_video_span(workspace, video, span)
            del st.session_state[_REQUESTED]
            st.session_state[_RESULT] = translate(
                "{time} is deleted, with {images} and {answers}."
            ).format(
                time=format_span(cut.span),
                images=counted(deleted.images, "image"),
                answers=counted(deleted.answers, "answer"),
            )
            st.rerun()
        if st.button(translate("Keep this part")):
            del st.session_state[_REQUESTED]
            st.rerun()
