"""What a memory's vector is made of."""

from __future__ import annotations

import pytest

from domain.memories import MemoryDraft, MemoryKind, MemorySource
from domain.people import Character
from domain.time import TimeSpan
from people.characters import ClipPeople
from people.names import search_text

KNOWN = ClipPeople(characters=(Character(number=1, name="Omar", faces=(), voices=(3,)),))


def said(text: str, speaker: str | None, source: MemorySource = MemorySource.SAID) -> MemoryDraft:
    span = TimeSpan.of(0, 1000)
    kind = MemoryKind.EPISODIC
    return MemoryDraft(kind=kind, text=text, span=span, source=source, speaker=speaker)


@pytest.mark.parametrize(
    ("text", "speaker", "searched"),
    [
        ("Pass the salt.", "Omar", "Omar: Pass the salt."),
        ("Pass the salt.", "<voice_3>", "Omar: Pass the salt."),
        ("Pass the salt.", "<voice_4>", "Pass the salt."),
        ("Pass the salt.", None, "Pass the salt."),
        ("<voice_3> leaves.", None, "Omar leaves."),
        ("<voice_4> leaves.", None, "<voice_4> leaves."),
    ],
)
def test_a_name_belongs_to_what_is_searched_and_a_tag_does_not(
    text: str, speaker: str | None, searched: str
) -> None:
    assert search_text(said(text, speaker), KNOWN) == searched


def test_what_was_read_is_searched_by_its_words_alone() -> None:
    assert search_text(said("EXIT", None, MemorySource.READ), KNOWN) == "EXIT"
