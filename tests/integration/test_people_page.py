"""The people page: who appears when, who may be one person, and putting it right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from domain.media import Percept
from library.people import likely_same_people, people_of_video
from people.across_videos import rename
from people.corrections import history, keep_apart, merge, split
from store.database import Store
from store.queries.rights import audit_entries
from tests.support.app_pages import (
    EVIL,
    LONG,
    RTL,
    app_over,
    open_page,
    open_page_in,
    press,
    sign_in,
    words,
)
from tests.support.asking import WordToolbox
from tests.support.library_templates import FilledLibraries
from tests.support.memory import (
    VIDEO,
    face,
    keyframe,
    known_video,
    memorise,
    percept,
    said,
    text_at,
    voice,
)
from tests.support.several_videos import list_people
from ui.corrections import FORGOTTEN_FILE


def scene(index: int, *who: int) -> Percept:
    """Some faces one after the other, and the first of them speaks."""
    start = 30 * index
    faces = [face(n, one, (start + 5 * n, start + 5 * n + 3)) for n, one in enumerate(who)]
    return percept(
        index,
        faces=tuple(faces),
        voices=(voice(0, who[0], (start, start + 4)),),
        utterances=(said(start, "The lamp is on the table.", voice=0, seconds=4),),
        keyframes=(keyframe(start + 1),),
        screen_texts=(text_at(start + 1, "Grace Hopper"), text_at(start + 1, "Professor", row=1)),
    )


@pytest.fixture
def library(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    with app_over(store, monkeypatch, WordToolbox):
        yield store


@pytest.fixture
def recording(library: Store, libraries: FilledLibraries) -> Store:
    libraries.fill(library, watch_film)
    return library


def watch_film(store: Store) -> None:
    """Three clips: one and two, two alone, one and three."""
    known_video(store, 3)
    memorise(store, scene(0, 1, 2), scene(1, 2), scene(2, 1, 3))


def name(page: AppTest, number: int, text: str) -> None:
    next(one for one in page.text_input if f"_{number}_" in str(one.key)).input(text).run()
    assert not page.exception


def select(page: AppTest, *numbers: int) -> None:
    for number in numbers:
        next(
            box for box in page.checkbox if str(box.key).endswith(f"selected_{VIDEO}_{number}")
        ).check()
    page.run()


def submit(page: AppTest, label: str) -> AppTest:
    next(b for b in page.button if b.label == label).click().run()
    assert not page.exception
    return page


def last(store: Store) -> int:
    return list_people(store, VIDEO)[-1].number


def test_without_videos_and_without_people_it_says_so(library: Store) -> None:
    assert "Nothing has been watched yet" in words(open_page("people"))
    known_video(library, 1)
    assert "Nobody was recognised" in words(open_page("people"))


def test_a_video_that_is_not_there_is_one_message(recording: Store) -> None:
    page = open_page("people", video="f" * 16)
    assert "this video is not in the library" in words(page)
    assert "When they appear" in words(page)


def test_people_are_shown_with_when_they_appear(recording: Store) -> None:
    first = people_of_video(recording, VIDEO).items[0]
    assert [span.start_ms for span in first.seen_spans] == [0, 60_000]
    assert [span.start_ms for span in first.heard_spans] == [0, 60_000]
    said = words(open_page("people", video=VIDEO, person=first.number))
    for part in ("0:00-1:04", "seen ", "▶ 1:00"):
        assert part in said


def test_somebody_is_named_and_the_name_is_taken_back(recording: Store) -> None:
    page = open_page("people", video=VIDEO)
    name(page, 1, "Ada Lovelace")
    assert "Grace Hopper is now called Ada Lovelace." in words(page)
    assert list_people(recording, VIDEO)[1].label == "Ada Lovelace"
    assert "Ada Lovelace" in words(page)
    # Beside the message; it is also in the list of corrections.
    assert len([b for b in page.button if b.label == "Undo"]) == 2
    submit(page, "Undo")
    assert list_people(recording, VIDEO)[1].label != "Ada Lovelace"
    assert history(recording, VIDEO)[0].undone
    assert "undone" in words(page)


@pytest.mark.parametrize("text", [EVIL, RTL, LONG[:200]])
def test_any_name_is_shown_as_it_is(recording: Store, text: str) -> None:
    page = open_page("people", video=VIDEO, person=0)
    name(page, 0, text)
    assert text in words(page)
    assert not any(one.allow_html for one in page.markdown)


def test_two_are_merged_and_parted_again(recording: Store) -> None:
    before = len(list_people(recording, VIDEO))
    page = open_page("people", video=VIDEO, person=1)
    assert next(b for b in page.button if b.label == "Merge").disabled
    select(page, 1, last(recording))
    submit(page, "Merge 2 people")
    assert "into Grace Hopper." in words(page)
    assert not any(box.value for box in page.checkbox if box.label == "Select")
    assert len(list_people(recording, VIDEO)) == before - 1
    tags = [tag.strip("<>") for tag in list_people(recording, VIDEO)[1].tags]
    assert "'' is no face or voice of '1'" in submit(page, "Split").error[0].value
    part = tags[-1].replace("_", " ").capitalize()
    next(box for box in page.checkbox if box.label == part).check()
    submit(page, "Split")
    assert "Split Grace Hopper into two people." in words(page)
    assert len(list_people(recording, VIDEO)) == before


def test_corrections_are_listed_and_undone_in_german(recording: Store, in_german: None) -> None:
    first, second, third = (str(one.number) for one in list_people(recording, VIDEO)[:3])
    rename(recording, VIDEO, third, "Ann and Eve")
    rename(recording, VIDEO, first, "Ruth")
    rename(recording, VIDEO, second, "")
    keep_apart(recording, VIDEO, second, third)
    merge(recording, VIDEO, third, first)
    tags = [tag for one in list_people(recording, VIDEO)[:1] for tag in one.tags[1:]]
    split(recording, VIDEO, first, tags[:2])
    plain = str.maketrans({"<": "", ">": "", "_": " "})
    parts = " und ".join(tags[:2]).translate(plain)
    parts = parts.replace("face", "Gesicht").replace("voice", "Stimme")
    page = open_page_in("de", "people", video=VIDEO)
    shown = words(page)
    assert f"Person {third} benannt: Ann and Eve" in shown
    assert f"Grace Hopper (Person {first}) umbenannt in Ruth" in shown
    assert f"Name entfernt: Grace Hopper (Person {second})" in shown
    assert f"Person {second} und Ann and Eve (Person {third}) getrennt gehalten" in shown
    assert f"Ann and Eve (Person {third}) mit Ruth (Person {first}) zusammengeführt" in shown
    assert f" von Ruth (Person {first}) abgetrennt, als andere Person" in shown
    next(one for one in page.button if one.label == "Rückgängig").click().run()
    assert f"Rückgängig gemacht: {parts} von Ruth (Person {first}) abgetrennt" in words(page)
    assert history(recording, VIDEO)[0].told == f"Named person {third} Ann and Eve"


def test_who_is_in_one_frame_is_never_suggested(library: Store) -> None:
    known_video(library, 2)
    both = percept(0, faces=(face(0, 1, (0, 3)), face(1, 2, (0, 3))))
    memorise(library, both)
    numbers = {(one.one.number, one.other.number) for one in likely_same_people(library, VIDEO)}
    assert (0, 1) not in numbers


def test_suggestion_is_taken_or_refused(recording: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from people import likely_same

    monkeypatch.setattr(likely_same, "MIN_COSINE_SHARE", -10.0)
    pairs = likely_same_people(recording, VIDEO)
    assert pairs
    before = len(list_people(recording, VIDEO))
    page = open_page("people", video=VIDEO)
    sign_in(monkeypatch, "ann@example.org")
    press(page, "No")
    assert "are two people" in words(page)
    assert likely_same_people(recording, VIDEO) == pairs[1:]
    press(page, "Yes, the same")
    assert len(list_people(recording, VIDEO)) == before - 1
    press(page, "Undo")
    with recording.begin() as session:
        deeds = {(one.who, str(one.deed)) for one in audit_entries(session, limit=3)}
    assert deeds == {("ann@example.org", "changed people")}


def test_somebody_is_forgotten_on_second_thought_and_brought_back(recording: Store) -> None:
    before, number = list_people(recording, VIDEO), last(recording)
    page = open_page("people", video=VIDEO, person=last(recording))
    assert next(b for b in page.button if b.label == "Forget").disabled
    next(c for c in page.checkbox if c.label.startswith("Yes, forget")).check().run()
    submit(page, "Forget")
    assert "is forgotten" in words(page)
    assert number not in {one.number for one in list_people(recording, VIDEO)}
    name, kept = page.session_state[FORGOTTEN_FILE]
    assert name.endswith(".zip")
    assert page.get("download_button")
    page.file_uploader[0].upload(name, kept, "application/zip").run()
    submit(page, "Restore")
    assert "Restored the person" in words(page)
    assert list_people(recording, VIDEO) == before


def test_many_people_are_shown_a_page_at_a_time(library: Store) -> None:
    known_video(library, 1)
    crowd = percept(0, faces=tuple(face(n, n, (n / 2, n / 2 + 0.2)) for n in range(30)))
    memorise(library, crowd)
    first = open_page("people", video=VIDEO)
    assert len([b for b in first.button if b.label == "Open"]) == 12
    assert "1 to 12 of 30" in words(first)
    last = open_page("people", video=VIDEO, page=3)
    assert len([b for b in last.button if b.label == "Open"]) == 6
