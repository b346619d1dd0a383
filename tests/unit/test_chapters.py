"""What sentences name and state, and the chapters that they make."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import WeightsMissing
from domain.memories import MemorySource
from domain.sentences import StatedFacts
from domain.time import TimeSpan
from models.profile import Profile
from models.sentences import SentenceParser
from retrieval.chapters import Chapter, TopicLine, Vectors, chapter_ends, chapters
from retrieval.english import Known, head_of, is_narrated, stated_facts
from services.health import check_sentences
from store.home import Home
from strategies.worldmm.captions import extract
from tests.support.remembered import PARSER, WordEmbedder

EMBED = WordEmbedder().embed
CARS = (
    "The old car has a broken engine that leaks oil.",
    "My brother repairs the engine of the car with new parts.",
    "The engine oil of the car costs forty dollars.",
)
SOUP = (
    "The tomato soup boils in a large pot on the stove.",
    "Fresh basil gives tomato soup a sweet taste.",
    "The guests eat tomato soup with bread from the stove.",
)
WORDS = """I Ann put the cup on white and who is if to of , . ? : let us be <face_1> 's at not "("""
NOTHING = """They handed it to her. / Katrina: Did you buy the cake? / Jake: Buy the cake.
/ Jake: If we have six chairs, we buy a table. / Seen: 2 people, 1 cup. / Then Katrina was laughing.
/ Others: I bought a cake. / I walk forward. / Put the cup on the table. / 我把杯子放在桌子上。
/ I went out to look for my tape measure. / I nod and say, "Ann broke the lamp." / ... /
/ Ich stelle die Tasse auf den Tisch und gehe in die Küche. / Ann isst Kuchen."""


def said(*texts: str, each_ms: int = 5_000, source: str = MemorySource.SAID) -> list[TopicLine]:
    return [
        TopicLine(TimeSpan.of(n * each_ms, (n + 1) * each_ms), text, source)
        for n, text in enumerate(texts)
    ]


def made_of(lines: list[TopicLine], parser: SentenceParser = PARSER) -> list[Chapter]:
    span = TimeSpan.of(0, max(line.span.end_ms for line in lines))
    return chapters(span, lines, EMBED([line.text for line in lines]), parser, EMBED)


def test_a_talk_of_two_topics_has_two_chapters_cut_at_the_change_and_named_by_them() -> None:
    cars, soup = made_of(said(*CARS * 5, *SOUP * 7))
    assert cars.span.end_ms == soup.span.start_ms == 15 * 5_000
    assert (cars.name, soup.name) == ("Car", "Tomato soup")
    assert set(cars.summary) <= set(CARS)
    assert set(soup.summary) <= set(SOUP)
    assert (cars.lines, soup.lines) == (tuple(range(15)), tuple(range(15, 36)))


def test_what_a_sponsor_has_to_say_is_never_quoted() -> None:
    sponsor = ("Our sponsor has the link in the description.", "The code gives you a discount.")
    found = made_of(said(*SOUP * 16, *sponsor * 5))
    assert len(found) > 1
    assert all(not {*sponsor} & {*one.summary} for one in found)


def test_a_slide_is_read_where_nothing_is_said() -> None:
    slides = said("BREAD PRICES", "BREAD COSTS", each_ms=10_000, source=MemorySource.READ)
    assert "prices" in made_of(slides)[0].name.casefold()
    (only,) = made_of([*slides, *said(*CARS)])
    assert only.name == "Car"


@pytest.mark.parametrize("parser", [PARSER, SentenceParser(Path("/nowhere"))])
def test_without_a_pipeline_of_the_language_names_are_words_of_it(parser: SentenceParser) -> None:
    german = (
        "Der alte Hund und die Katze sind nicht in dem Garten.",
        "Ein Nachbar hat den alten Hund mit der Leine in dem Wald gesehen.",
        "Ich gehe mit dem Hund zum Arzt, und er ist nicht krank.",
    )
    (only,) = made_of(said(*german), parser)
    assert only.name == "Hund"
    assert set(only.summary) <= set(german)
    assert made_of(said(*CARS), parser)[0].name.casefold() in "car engine oil"


def topics(*minutes: float) -> tuple[TimeSpan, list[TopicLine], Vectors]:
    """Return lines of 5 s: so many minutes of each subject."""
    dice = np.random.default_rng(0)
    counts = [max(1, round(one * 12)) for one in minutes]
    rows = np.repeat(dice.normal(size=(len(counts), 32)), counts, axis=0)
    rows += dice.normal(size=rows.shape)
    lines = said(*["ten words " * 5] * len(rows))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return TimeSpan.of(0, len(rows) * 5_000), lines, unit.astype(np.float32)


def test_the_longest_chapters_are_worded_and_those_that_cannot_be_keep_their_names() -> None:
    (span, lines, vectors), seen = topics(*[1] * 180), list[int]()

    def word(texts: Sequence[str]) -> tuple[str, str] | None:
        seen.append(len(texts))
        return ("Told anew", "In other words.") if len(seen) > 1 else None

    plain = chapters(span, lines, vectors, PARSER, lambda texts: vectors[: len(texts)])
    worded = chapters(span, lines, vectors, PARSER, lambda texts: vectors[: len(texts)], word=word)
    anew = [one for one, before in zip(worded, plain, strict=True) if one != before]
    assert sorted(len(one.lines) for one in plain)[-12:] == sorted(seen)
    assert [(one.name, *one.summary) for one in anew] == [("Told anew", "In other words.")] * 11


def test_a_crowded_video_takes_bounded_memory() -> None:
    span, _, vectors = topics(4, 4)
    tracemalloc.start()
    chapter_ends(span, said(*["word"] * 4_800, each_ms=100), np.repeat(vectors, 50, axis=0))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100_000_000


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
