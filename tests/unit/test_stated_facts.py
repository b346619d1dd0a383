"""What sentences name and state, and nothing that they do not."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copytree

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import WeightsMissing
from domain.stated import StatedFacts
from models.profile import Profile
from models.sentences import SentenceParser
from retrieval.english import Known, head_of, is_narrated, stated_facts
from services.health import check_sentences
from store.home import Home
from strategies.worldmm.captions import extract
from tests.support.remembered import PARSER

PEOPLE = ("Ann", "Lucia", "Katrina", "Alice", "Tasha", "Jake", "Liu Ting", "Will", "I", "Others")
"""With "I" and "Others", as builders note whom captions name."""
KNOWN = Known(people=PEOPLE)
NARRATED = KNOWN.model_copy(update={"narrated": True})

# Sentences, each with the triples it states.
STATED = """
I put the cup on the table. = I|put|cup, I|put on|table
<face_1> and <face_2> are on screen together. = <face_1>|be on|screen, <face_2>|be on|screen
<face_3> is named Ann, host (shown on screen). = <face_3>|be named|Ann, <face_3>|be named|host
Ann: we moved inside because it rained = Ann|move|inside
Katrina handed it to Alice, who passed it to Tasha. = Katrina|hand to|Alice, Alice|pass to|Tasha
I'm facing the dining table, holding my phone. = I|face|dining table, I|hold|phone
I see Tasha is eating a sweet potato. = I|see|Tasha, Tasha|eat|sweet potato
I watched Katrina hand out the utensils. = I|watch|Katrina, Katrina|hand out|utensil
I picked the box up and handed the box to Lucia. = I|pick up|box, I|hand|box, I|hand to|Lucia
I walk forward and put the data cable back into the box. = I|put|data cable, I|put into|box
Liu Ting gives Will two boxes. = Liu Ting|give to|Will, Liu Ting|give|box
Everyone at the table was looking at me. = everyone|be at|table, everyone|look at|I
There are many people in the living room. = people|be in|living room
The cup was put on the table by Ann. = cup|be put on|table, Ann|put|cup
Lucia's cup is white. = Lucia's cup|be|white
The cup on the shelf is next to a ready-made cake. = cup|be on|shelf, cup|be next to|ready-made cake
I took a look at the bottle of water. = I|look at|bottle of water
I'll turn off my phone. = I|turn off|phone
I'm going to put it in front of Ann. = I|put in front of|Ann
Lucia says that the cup is on the table. = cup|be on|table
I hold the cup and Ann opens the door. = I|hold|cup, Ann|open|door
In the garden Ann is planting flowers. = Ann|plant in|garden, Ann|plant|flower
I see the cups, the plates and the spoons. = I|see|cup, I|see|plate, I|see|spoon
I open the box that Ann brought. = I|open|box, Ann|bring|box
The man wearing a hat left without touching the lamp. = man|wear|hat
I continue to ride the bike, staring at Will. = I|ride|bike, I|stare at|Will
Jake: I don't like coffee. = Jake|not like|coffee
Jake: We should buy a cake. = Jake|should buy|cake
Jake: Haha, um, I bought the scissors yesterday. = Jake|buy|scissors
I went to my room to look for my tape measure. = I|go to|room
I want to open the box. = I|want to open|box
"""
ROWS = [row.split(" = ") for row in STATED.strip().splitlines()]


def _facts(text: str, known: Known = KNOWN) -> StatedFacts:
    return extract(PARSER, [text], known)[0]


def _triples(text: str, known: Known = KNOWN) -> list[str]:
    return [f"{t.subject}|{t.predicate}|{t.object}" for t in _facts(text, known).triples]


@pytest.mark.parametrize(("sentence", "triples"), ROWS)
def test_a_sentence_gives_the_triples_it_states(sentence: str, triples: str) -> None:
    assert ", ".join(_triples(sentence)) == triples


NOTHING = """They handed it to her. / Katrina: Did you buy the cake? / Jake: Buy the cake.
/ Jake: If we have six chairs, we buy a table. / Seen: 2 people, 1 cup. / Then Katrina was laughing.
/ Others: I bought a cake. / I walk forward. / Put the cup on the table. / 我把杯子放在桌子上。
/ I went out to look for my tape measure. / I nod and say, "Ann broke the lamp." / ... /
/ Ich stelle die Tasse auf den Tisch und gehe in die Küche. / Ann isst Kuchen."""


@pytest.mark.parametrize("sentence", re.split(r"\s*/\s*", NOTHING))
def test_nothing_is_stated_of_nobody_nor_in_questions_or_plans(sentence: str) -> None:
    assert _triples(sentence) == []


def test_without_a_subject_it_is_the_narrators_where_one_narrates() -> None:
    told = ["I|place|phone", "I|place on|table"]
    assert _triples("Place the phone on the table.", NARRATED) == told
    for line in ("Jake: Place the phone on the table.", "Seen: 2 people, 1 cup."):
        assert _triples(line, NARRATED) == []
    assert is_narrated(["I open the door.", "The door is open.", "A man leaves."])
    assert not is_narrated(["A man opens the door.", "The door is open."])
    assert not is_narrated([])


def test_entities_have_kinds() -> None:
    caption = "Lucia carries a red cup into the kitchen.\nEveryone hears an explanation from Ann."
    caption += "\nAngela Merkel flew to Paris to see my lamp."
    assert ", ".join(f"{one.kind} {one.name}" for one in _facts(caption).entities) == (
        "PERSON Lucia, OBJECT red cup, LOCATION kitchen, GROUP everyone, CONCEPT explanation, "
        "PERSON Ann, PERSON Angela Merkel, LOCATION Paris, OBJECT lamp"
    )
    assert [head_of(n) for n in ("red cup", "bottle of water", "Ann")] == ["cup", "bottle", "Ann"]


def test_a_caption_has_its_triples_once_in_order_whatever_is_read_beside_it() -> None:
    captions = ["I hold the cup.\nI open the door.\nI am holding the cup."]
    captions += [sentence + more for sentence, _ in ROWS for more in ("", "\nAnn sings a song.")]
    found = extract(PARSER, captions, KNOWN)
    assert [one.text for one in found[0].triples] == ["I hold cup", "I open door"]
    with ThreadPoolExecutor(4) as threads:
        assert found == list(threads.map(_facts, captions))


def test_named_entities_are_found_where_they_stand() -> None:
    text = "<face_1>: Angela Merkel paid $3 million to Siemens in Berlin on Monday at 5 p.m."
    found, *others = PARSER.named_entities([text, "nothing", ""])
    assert ", ".join(f"{one.label} {text[one.start : one.end]}" for one in found) == (
        "PERSON Angela Merkel, MONEY $3 million, ORG Siemens, GPE Berlin, DATE Monday, TIME 5 p.m."
    )
    assert others == [(), ()]


# What screens show, each with its named entities.
SHOWN = """
JANE SMITH = PERSON JANE SMITH
Dr. Peter Hall = PERSON Peter Hall
PROF. MADHAVAN MUKUND = PERSON MADHAVAN MUKUND
ANNA-LENA ÖBERG = PERSON ANNA-LENA ÖBERG
MATT O'DOWD = PERSON MATT O'DOWD
FEDERAL RESERVE = ORG FEDERAL RESERVE
New York = GPE New York
NEW YORK = GPE NEW YORK
JANE SMITH, İZMİR = PERSON JANE SMITH
ChatLLM Teams = ORG Teams
BREAKING NEWS =
"""


@pytest.mark.parametrize("row", SHOWN.strip().splitlines())
def test_names_on_screens_are_found_in_capitals_too(row: str) -> None:
    shown, named = row.split(" =")
    (found,) = PARSER.named_entities([shown])
    assert ", ".join(f"{one.label} {one.text}" for one in found) == named.strip()
    assert all(shown[one.start : one.end] == one.text for one in found)


def test_without_its_files_it_is_said_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(WeightsMissing, match=r"config\.cfg is missing in .*Run: homer models pull"):
        stated_facts(SentenceParser(tmp_path), ["I open the door."], KNOWN)


def test_other_languages_are_read_by_pipelines_of_the_users(tmp_path: Path) -> None:
    folder, pipeline = str(tmp_path / "german"), spacy.blank("de")
    rules = pipeline.add_pipe("entity_ruler")
    rules.add_patterns([{"label": "LOC", "pattern": "Küche"}])  # type: ignore[attr-defined]
    pipeline.to_disk(folder)
    parser = SentenceParser(Home.default().weights, {"de": folder})
    lines = ["Ann geht mit der Tasse in die Küche und ist nicht da.", "Ann sings a song."]
    german, english = stated_facts(parser, lines, KNOWN)
    assert [f"{one.kind} {one.name}" for one in german.entities] == ["PERSON Ann", "LOCATION Küche"]
    assert english == _facts(lines[1])
    for name, is_there in {folder: True, "no_such_one": False, str(tmp_path): False}.items():
        row = check_sentences(Profile(name="own", sentences={"de": name}))
        assert (row.ok, row.found, name in row.fix) == (is_there, "de, en", not is_there)
    broken = copytree(folder, tmp_path / "broken")
    (broken / "config.cfg").write_text("[nlp]\n")
    for name in ("no_such_one", str(tmp_path / "no_folder"), str(broken)):
        unread = SentenceParser(Home.default().weights, {"fr": name})
        with pytest.raises(WeightsMissing, match=f"cannot load the pipeline {name}: install"):
            stated_facts(unread, ["Je ne suis pas dans la cuisine avec elle."], KNOWN)


WORDS = """I Ann put the cup on white and who is if to of , . ? : let us be <face_1> 's at not "("""


@pytest.mark.parametrize("part", ["and run ", "the lid of ", "I see that ", "x"])
def test_a_sentence_without_end_is_read_as_far_as_it_is_one(part: str) -> None:
    assert all(len(one.name) <= 1_000 for one in _facts(10_000 * part, NARRATED).entities)


@given(st.lists(st.sampled_from(WORDS.split()), max_size=25).map(" ".join))
def test_any_string_of_words_is_read_to_its_end(text: str) -> None:
    found = _facts(text, NARRATED)
    named = {entity.name for entity in found.entities}
    for triple in found.triples:
        assert triple.predicate
        assert triple.subject != triple.object
        assert {triple.subject, triple.object} <= named - {""}
