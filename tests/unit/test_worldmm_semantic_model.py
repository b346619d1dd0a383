"""What lasts by a scripted model: what says the same again or contradicts takes the old's place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agent.builder import Embed
from agent.reasoners.port import Unreadable
from domain.sentences import Triple
from domain.time import TimeSpan
from models.messages import Message
from strategies.worldmm.builder import SemanticByModel
from strategies.worldmm.model_writer import ModelWriter
from strategies.worldmm.replies import MOST_LASTING
from strategies.worldmm.semantic import EpisodicTriple, SemanticChange, SemanticTriple
from strategies.worldmm.settings import WorldMemorySettings
from tests.support.remembered import WordEmbedder

SETTINGS = WorldMemorySettings()
SPAN = TimeSpan.of(0, 600_000)
COFFEE = (
    "Alice like beverages",
    "Alice favor coffee after dinner",
    "Alice prefer hot drinks",
    "Alice drink coffee",
)


class Scripted:
    """A model with answers in order; ``pages`` are the last messages that it was sent."""

    sees = False

    def __init__(self, *answers: Any) -> None:
        self._answers, self.pages = list(answers), list[str]()

    def ask(self, purpose: str, messages: Sequence[Message], schema: Any, **more: Any) -> Any:
        del purpose, more
        self.pages.append(messages[-1].content)
        answer = self._answers.pop(0)
        if answer is None:
            raise Unreadable("no JSON")
        return schema.model_validate(answer)


def triple(text: str) -> Triple:
    subject, predicate, target = text.split(" ", 2)
    return Triple(subject=subject, predicate=predicate, object=target)


def written(text: str, *evidence: int) -> dict[str, Any]:
    return triple(text).model_dump() | ({"evidence": list(evidence)} if evidence else {})


def known(text: str, clip: int = 1) -> SemanticTriple:
    return SemanticTriple(triple=triple(text), evidence=(clip,), from_clip=clip)


def seen(*texts: str) -> list[EpisodicTriple]:
    return [
        EpisodicTriple(triple=triple(text), span=SPAN, clip=20 + n) for n, text in enumerate(texts)
    ]


def change(
    model: Scripted,
    happened: Sequence[EpisodicTriple],
    valid: Sequence[SemanticTriple],
    embed: Embed | None = None,
) -> SemanticChange:
    made = SemanticByModel(SETTINGS, ModelWriter(model, SETTINGS), embed or WordEmbedder().embed)
    return made.change(happened, valid, SPAN, 29)


def test_a_restatement_and_a_contradiction_take_the_place_of_old_triples() -> None:
    """Hot tea with milk includes hot tea; black coffee that is hated contradicts it liked."""
    valid = [
        known("Ann like hot tea", 3),
        known("Ann like strong black coffee", 5),
        known("Bob own boat"),
    ]
    happened = seen("Ann drink hot tea", "Ann refuse coffee", "Ann refuse coffee")
    model = Scripted(
        {
            "triples": [
                written("Ann like hot tea with milk", 0),
                written("Ann hate strong black coffee", 1),
            ]
        },
        {"replaced": [0], "triple": written("Ann like hot tea, best with milk")},
        {"replaced": [0], "triple": written("Ann hate strong black coffee")},
    )
    made = change(model, happened, valid)
    assert [(one.text, one.from_clip, one.evidence) for one in made.added] == [
        ("Ann like hot tea, best with milk", 29, (3, 20)),
        ("Ann hate strong black coffee", 29, (5, 21, 22)),
    ]
    found = [(one.text, one.from_clip, one.to_clip) for one in made.closed]
    assert found == [("Ann like hot tea", 3, 29), ("Ann like strong black coffee", 5, 29)]
    assert "0. Ann | drink | hot tea\n1. Ann | refuse | coffee" in model.pages[0]
    assert "Bob | own | boat" not in "".join(model.pages[1:])


def test_what_was_said_in_other_words_is_joined_and_what_is_wider_stays() -> None:
    """Of four triples that are like a new one the model replaces two, and words it anew."""
    valid = [known(text, clip) for clip, text in enumerate(COFFEE)]
    model = Scripted(
        {"triples": [written("Alice enjoy coffee", 0)]},
        {"replaced": [1, 3], "triple": written("Alice like coffee")},
    )

    def alike(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), 1), dtype=np.float32)

    made = change(model, seen("Alice enjoy coffee"), valid, alike)
    found = [(one.text, one.from_clip, one.to_clip) for one in made.closed]
    assert found == [(COFFEE[1], 1, 29), (COFFEE[3], 3, 29)]
    assert [(one.text, one.evidence, one.from_clip, one.to_clip) for one in made.added] == [
        ("Alice like coffee", (1, 3, 20), 29, None)
    ]
    shown = "".join(f"{n}. {text.replace(' ', ' | ', 2)}\n" for n, text in enumerate(COFFEE))
    assert shown.strip() in model.pages[1]


def test_at_most_ten_that_are_like_it_are_shown() -> None:
    valid = [known(f"Ann like sweet red apples number{n}") for n in range(15)]
    valid += [known("Bob own boat")]
    model = Scripted(
        {"triples": [written("Ann like sweet red apples", 0)]},
        {"replaced": [], "triple": written("Ann like sweet red apples")},
    )
    made = change(model, seen("Ann eat sweet red apples"), valid)
    assert len(re.findall(r"^\d+\. ", model.pages[1], re.M)) == 10
    assert made.closed == ()
    assert [one.text for one in made.added] == ["Ann like sweet red apples"]


def test_nothing_is_asked_where_nothing_is_like_it_or_nothing_happened() -> None:
    model = Scripted({"triples": [written("Ann like tea", 0)]})
    made = change(model, seen("Ann drink tea"), [known("Bob own boat")])
    assert [one.text for one in made.added] == ["Ann like tea"]
    assert change(Scripted(), [], []) == SemanticChange()


def test_what_is_replaced_within_the_same_minutes_never_lasted() -> None:
    model = Scripted(
        {"triples": [written("Ann like hot tea", 0), written("Ann love hot tea", 0)]},
        {"replaced": [0], "triple": written("Ann love hot tea")},
    )
    made = change(model, seen("Ann drink tea"), [])
    assert [one.text for one in made.added] == ["Ann love hot tea"]
    assert made.closed == ()


def test_a_decision_names_only_what_was_shown() -> None:
    decision = {"replaced": [0, 7], "triple": written("<face_3> like tea")}
    model = Scripted({"triples": [written("Ann like tea", 0)]}, decision, decision)
    made = change(model, seen("Ann drink tea"), [known("Ann like green tea")])
    assert "there is no existing triple 7" in model.pages[2]
    assert [one.text for one in made.closed] == ["Ann like green tea"]
    assert [one.text for one in made.added] == ["Ann like tea"]


def test_what_names_people_that_were_not_shown_is_left_out() -> None:
    model = Scripted({"triples": [written("<face_3> like tea", 0), written("Ann like tea", 0)]})
    assert [one.text for one in change(model, seen("Ann drink tea"), []).added] == ["Ann like tea"]


def test_without_a_readable_decision_the_rules_decide() -> None:
    model = Scripted({"triples": [written("Ann like tea", 0)]}, None, None)
    made = change(model, seen("Ann drink tea"), [known("Ann like green tea")])
    assert [one.text for one in made.closed] == ["Ann like green tea"]
    assert [one.text for one in made.added] == ["Ann like tea"]


def test_of_too_many_triples_the_first_stay(caplog: pytest.LogCaptureFixture) -> None:
    many = [written(f"who{n} like{n} thing{n}", 0) for n in range(MOST_LASTING + 5)]
    model = Scripted({"triples": many}, {"triples": many})
    made = change(model, seen("Ann drink tea"), [])
    assert "these are 25 triples: write at most 20" in model.pages[1]
    assert [one.triple.object for one in made.added] == [f"thing{n}" for n in range(20)]
    assert "5 triples of a reply are left out" in caplog.text


def test_what_lasts_never_has_the_predicate_by_which_rules_join() -> None:
    mentioned = {"subject": "Ann", "predicate": "is mentioned", "object": "tea"}
    model = Scripted(
        {"triples": [{**mentioned, "evidence": [0]}, written("Ann like tea", 0)]},
        {"replaced": [], "triple": mentioned},
    )
    made = change(model, seen("Ann drink tea"), [known("Ann like green tea")])
    assert [one.text for one in made.added] == ["Ann like tea"]


def test_what_is_known_and_what_is_new_is_embedded_at_once() -> None:
    batches: list[list[str]] = []

    def embed(texts: Sequence[str]) -> Any:
        batches.append(list(texts))
        return WordEmbedder().embed(texts)

    new = [written(f"who{n} like{n} thing{n}", 0) for n in range(9)]
    valid = [known(f"owner{n} own{n} boat{n}") for n in range(9)]
    change(Scripted({"triples": new}), seen("Ann drink tea"), valid, embed)
    assert [len(batch) for batch in batches] == [18]
