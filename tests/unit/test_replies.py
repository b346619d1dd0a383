"""What a language model replies becomes the machine's own words, whatever its habits."""

from __future__ import annotations

import pytest

from agent.reasoners import replies
from agent.reasoners.port import Assessment
from agent.reasoners.replies import (
    ActReply,
    AssessReply,
    ReplanReply,
    refs_in,
)
from domain.asking import Mode
from models.chat import read_value

prompt = replies.prompt


@pytest.mark.parametrize(
    ("said", "refs"),
    [
        (["[m12]"], ("m12",)),
        (["m12, [s3] and k7"], ("m12", "s3", "k7")),
        (["m1", "m1", " m2 "], ("m1", "m2")),
        (["memory 12"], ("memory 12",)),
        (["", " "], ()),
        ([], ()),
    ],
)
def test_any_spelling_of_citations_is_read(said: list[str], refs: tuple[str, ...]) -> None:
    assert refs_in(said) == refs


def test_a_search_and_an_answer_become_actions() -> None:
    text = '{"reason": "first", "action": "search", "mode": "keyframe", "query": " red door "}'
    search = read_value(text, ActReply).decision()
    assert (search.kind, search.mode, search.query) == ("search", Mode.KEYFRAME, "red door")
    text = '{"action": "answer", "answer": "C", "citations": ["[m1]"], "mode": null}'
    answer = read_value(text, ActReply).decision()
    assert (answer.kind, answer.answer, answer.citations) == ("answer", "C", ("m1",))


def test_an_assessment_and_a_repair_lose_their_spaces() -> None:
    text = '{"resolved": [{"subtask": " t1 ", "answer": "x", "evidence": ["[m4]"]}]}'
    claim = read_value(text, AssessReply).assessment().resolved[0]
    assert (claim.subtask, claim.refs) == ("t1", ("m4",))
    assert read_value("{}", AssessReply).assessment() == Assessment()
    text = '{"rewrite": [{"id": " t2", "text": "y"}], "abandon": ["t3 "]}'
    edits = read_value(text, ReplanReply).edits()
    assert (edits.rewrite[0].id, edits.abandon, edits.add) == ("t2", ("t3",), ())
