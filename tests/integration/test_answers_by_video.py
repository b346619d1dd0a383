"""An open question over a few videos is answered for each of them, and every run replays."""

from __future__ import annotations

import pytest

from domain.asking import Question
from domain.trajectory import EvidenceRetrieved, ForkEdit
from graphs.ask_result import AskResult
from graphs.replay import replay
from store.database import Store
from store.queries.trajectories import events_of
from tests.support.asking import WordToolbox
from tests.support.remembered import Said, watch
from tests.support.runs import ask, fork

GARDEN, HARBOUR, STATION = ("a" * 16, "b" * 16, "c" * 16)
TALKS = {
    GARDEN: (
        (Said("The roses were planted in autumn", 2), Said("Hedges need cutting twice a year", 12)),
        (Said("Forty roses stand by the gate", 3), Said("The gardener drinks his tea", 14)),
    ),
    HARBOUR: (
        (Said("The ferry leaves the harbour at noon", 2), Said("Sailors repair their nets", 12)),
        (Said("Roses are sold on the pier", 3), Said("Gulls steal the bread", 14)),
    ),
    STATION: (
        (Said("The train to Bern is late", 2), Said("A conductor checks the tickets", 12)),
        (Said("Somebody plays the piano", 3), Said("The clock above the hall has stopped", 14)),
    ),
}


@pytest.fixture
def talks(store: Store) -> Store:
    for video, lines in TALKS.items():
        watch(store, video, lines)
    return store


def asked(store: Store, text: str, *videos: str) -> AskResult:
    """Asked of the whole machine; the run must replay byte for byte."""
    made = ask(store, WordToolbox(), Question(text=text, videos=videos))
    assert replay(store, made.trajectory_id).divergence is None
    return made


def searches(store: Store, made: AskResult) -> list[EvidenceRetrieved]:
    with store.begin() as session:
        events = events_of(session, made.trajectory_id)
    return [event for event in events if isinstance(event, EvidenceRetrieved)]


def test_each_video_is_quoted_under_its_title(talks: Store) -> None:
    answer = asked(talks, "Where are the roses?", GARDEN, HARBOUR).answer
    first, second = answer.text.splitlines()
    assert first.startswith(f"{GARDEN}: ")
    assert "roses" in first.lower()
    assert second == f"{HARBOUR}: Roses are sold on the pier"
    assert {one.video for one in answer.citations} == {GARDEN, HARBOUR}


def test_a_video_in_which_nothing_is_close_is_named(talks: Store) -> None:
    answer = asked(talks, "When does the ferry leave the harbour?", GARDEN, HARBOUR, STATION).answer
    assert answer.text.splitlines() == [
        f"{GARDEN}: nothing close was found.",
        f"{HARBOUR}: The ferry leaves the harbour at noon Sailors repair their nets",
        f"{STATION}: nothing close was found.",
    ]
    assert {one.video for one in answer.citations} == {HARBOUR}


def test_a_library_of_many_videos_is_answered_from_as_one(talks: Store) -> None:
    more = [f"{number:016x}" for number in range(3)]
    for video in more:
        watch(talks, video, TALKS[STATION])
    answer = asked(talks, "When does the ferry leave the harbour?", *TALKS, *more).answer
    assert answer.text.startswith("The ferry leaves the harbour at noon")
    assert {one.video for one in answer.citations} == {HARBOUR}


def test_what_is_put_in_one_video_leaves_the_others(talks: Store) -> None:
    made = asked(talks, "When does the ferry leave the harbour?", GARDEN, HARBOUR, STATION)
    at = next(one for one in searches(talks, made) if one.by_video)
    assert {piece.video for piece in at.evidence} > {HARBOUR}, (
        "of the others too, but none is close"
    )
    put = tuple(
        piece.model_copy(update={"text": "The ferry never leaves"})
        if piece.video == HARBOUR
        else piece
        for piece in at.evidence
    )
    forked = fork(talks, WordToolbox(), made.trajectory_id, at.round, ForkEdit(evidence=put))
    assert replay(talks, forked.trajectory_id).divergence is None
    assert forked.answer.text.splitlines() == [
        f"{GARDEN}: nothing close was found.",
        f"{HARBOUR}: The ferry never leaves",
        f"{STATION}: nothing close was found.",
    ]


def test_an_ordinary_part_beside_structure_is_quoted_of_each_video(talks: Store) -> None:
    answer = asked(talks, "How does it begin and where are the roses?", GARDEN, HARBOUR).answer
    garden, harbour = answer.text.splitlines()
    assert garden.startswith(f"{GARDEN}: It begins with")
    assert "roses" in garden.lower()
    assert harbour.startswith(f"{HARBOUR}: It begins with")
    assert "Roses are sold on the pier" in harbour
