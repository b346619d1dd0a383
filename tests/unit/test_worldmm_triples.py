"""WorldMM's local triples: what a sentence states, and nothing that it does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.english.phrases import EntityKind, head_of
from retrieval.english.sentences import Known, is_narrated
from retrieval.english.words import lemma, listed, tokenize
from strategies.worldmm.triples import extract

KNOWN = Known(people=("Ann", "Lucia", "Katrina", "Alice", "Tasha", "Jake", "Liu Ting"))
NARRATED = KNOWN.model_copy(update={"narrated": True})

STATED = {
    "I put the cup on the table.": ["I|put|cup", "I|put on|table"],
    "<face_3> is on screen.": ["<face_3>|be on|screen"],
    "<face_1> and <face_2> are on screen together.": [
        "<face_1>|be on|screen",
        "<face_2>|be on|screen",
    ],
    "<face_3> is named Ann, host (shown on screen).": [
        "<face_3>|be named|Ann",
        "<face_3>|be named|host",
    ],
    "Ann: we moved inside because it rained": ["Ann|move|inside"],
    "Katrina handed it to Alice, who then passed it to Tasha.": [
        "Katrina|hand to|Alice",
        "Alice|pass to|Tasha",
    ],
    "I'm facing the dining table, holding my phone.": ["I|face|dining table", "I|hold|phone"],
    "I see Tasha is eating a roasted sweet potato.": [
        "I|see|Tasha",
        "Tasha|eat|roasted sweet potato",
    ],
    "I watched Katrina hand out the utensils.": ["I|watch|Katrina", "Katrina|hand out|utensil"],
    "I picked the box up and handed the box to Lucia.": [
        "I|pick up|box",
        "I|hand|box",
        "I|hand to|Lucia",
    ],
    "I walk forward and put the data cable back into the box.": [
        "I|put|data cable",
        "I|put into|box",
    ],
    "Liu Ting gives Ann two boxes.": ["Liu Ting|give to|Ann", "Liu Ting|give|box"],
    "Everyone at the table was looking at me.": ["everyone|look at|I"],
    "There are many people in the living room.": ["people|be in|living room"],
    "The cup was put on the table by Ann.": ["cup|be put on|table", "Ann|put|cup"],
    "Lucia's cup is white.": ["Lucia's cup|be|white"],
    "I took a look at the bottle of water.": ["I|look at|bottle of water"],
    "I'll turn off my phone.": ["I|turn off|phone"],
    "Lucia says that the cup is on the table.": ["cup|be on|table"],
    "I left the room.": ["I|leave|room"],
    "I hold the cup and Ann opens the door.": ["I|hold|cup", "Ann|open|door"],
    "In the garden, Ann and Tasha are planting flowers.": [
        "Ann|plant|flower",
        "Tasha|plant|flower",
    ],
    "I see the cups, the plates and the spoons.": ["I|see|cup", "I|see|plate", "I|see|spoon"],
    "I found McDonald's open.": ["I|find|McDonald"],
    "Jake: I don't like coffee.": ["Jake|not like|coffee"],
    "Jake: We should buy a cake.": ["Jake|should buy|cake"],
    "Jake: I bought the cake yesterday.": ["Jake|buy|cake"],
}


def _triples(text: str, known: Known = KNOWN) -> list[str]:
    return [f"{t.subject}|{t.predicate}|{t.object}" for t in extract(text, known).triples]


@pytest.mark.parametrize("sentence", STATED)
def test_a_sentence_gives_the_triples_it_states(sentence: str) -> None:
    assert _triples(sentence) == STATED[sentence]


@pytest.mark.parametrize(
    "sentence",
    [
        "They handed it to her.",
        "Katrina: Did you buy the cake?",
        "Jake: If we have six chairs, we buy a table.",
        "Jake: Buy the cake.",
        "Seen: 2 people, 1 cup.",
        "Then Katrina was laughing.",
        "Others: I bought a cake.",
        "I walk forward.",
        "Put the cup on the table.",
        "我把杯子放在桌子上。",
        "Ich stelle die Tasse auf den Tisch und gehe in die Küche.",
    ],
)
def test_nothing_is_stated_of_nobody_in_questions_conditions_or_other_languages(
    sentence: str,
) -> None:
    assert _triples(sentence) == []


def test_what_is_intended_did_not_happen() -> None:
    assert _triples("I went to my room to look for my tape measure.") == ["I|go to|room"]
    assert _triples("I want to open the box.") == ["I|want to open|box"]
    names = {e.name for e in extract("I went out to look for my tape measure.", KNOWN).entities}
    assert "tape measure" in names


def test_without_a_subject_it_is_the_narrators_where_one_narrates() -> None:
    assert _triples("Place the phone on the table.", NARRATED) == [
        "I|place|phone",
        "I|place on|table",
    ]
    assert _triples("Jake: Place the phone on the table.", NARRATED) == []
    assert is_narrated(["I open the door.", "The door is open.", "A man leaves."])
    assert not is_narrated(["A man opens the door.", "The door is open."])
    assert not is_narrated([])


@pytest.mark.parametrize(
    "sentence", [*STATED, "I am very happy.", "Ann: It is deep.", "Put it on me."]
)
def test_both_ends_of_a_triple_are_entities(sentence: str) -> None:
    found = extract(sentence, NARRATED)
    named = {entity.name for entity in found.entities}
    assert {end for t in found.triples for end in (t.subject, t.object)} <= named


def test_entities_have_kinds() -> None:
    caption = "Lucia carries a red cup into the kitchen.\nEveryone hears an explanation from Ann."
    kinds = {entity.name: entity.kind for entity in extract(caption, KNOWN).entities}
    assert kinds == {
        "Lucia": EntityKind.PERSON,
        "Ann": EntityKind.PERSON,
        "red cup": EntityKind.OBJECT,
        "kitchen": EntityKind.LOCATION,
        "everyone": EntityKind.GROUP,
        "explanation": EntityKind.CONCEPT,
    }


def test_a_caption_gives_each_triple_once_in_order() -> None:
    caption = "I hold the cup.\nI open the door.\nI am holding the cup."
    assert _triples(caption) == ["I|hold|cup", "I|open|door"]


def test_quotations_are_not_read_as_events() -> None:
    assert _triples('I nod and say, "Ann broke the lamp." I open the box.') == ["I|open|box"]


def test_words_are_brought_to_their_base_form() -> None:
    assert [lemma(w, "VERB") for w in ("held", "putting", "saw", "tidies")] == [
        "hold",
        "put",
        "see",
        "tidy",
    ]
    assert [lemma(w, "NOUN") for w in ("boxes", "children", "glasses", "scissors")] == [
        "box",
        "child",
        "glasses",
        "scissors",
    ]
    assert [head_of(n) for n in ("red cup", "bottle of water", "Ann")] == ["cup", "bottle", "Ann"]


def test_a_whole_name_is_one_word() -> None:
    tokens = tokenize("Liu Ting's cup isn't Ann's.", ("Liu Ting", "Ann"))
    assert [token.text for token in tokens] == [
        *("Liu Ting", "'s", "cup", "is", "not", "Ann", "'s", ".")
    ]


PIECES = st.sampled_from(
    sorted(
        listed(
            """I Ann put the cup on happy white and who is if to of , . ? : there let us be
            <face_1> some running 's because looked at not"""
        )
    )
)


@given(st.lists(PIECES, max_size=25).map(" ".join))
def test_any_string_of_words_is_read_to_its_end(text: str) -> None:
    found = extract(text, NARRATED)
    named = {entity.name for entity in found.entities}
    for triple in found.triples:
        assert triple.subject
        assert triple.predicate
        assert triple.object
        assert triple.subject != triple.object
        assert {triple.subject, triple.object} <= named
    assert all(len(name.split()) < 12 for name in named)
