"""WorldMM's local captions: the lines themselves, then the sentences that say most of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.time import TimeSpan
from retrieval.chapters import DocumentCounts, caption_sentences, coarser_caption
from strategies.worldmm.captions import SeenLine, finest_caption

WORDS = st.sampled_from(("cup", "table", "garden", "rain", "guitar", "noodles", "bridge", "lamp"))
SENTENCES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
CAPTIONS = st.lists(
    st.lists(SENTENCES, min_size=1, max_size=5).map("\n".join), min_size=1, max_size=6
)


def _line(start_ms: int, text: str, speaker: str = "") -> SeenLine:
    return SeenLine(span=TimeSpan.of(start_ms, start_ms + 1_000), text=text, speaker=speaker)


def _counts(*captions: str) -> DocumentCounts:
    counts = DocumentCounts()
    for caption in captions:
        counts.add(caption)
    return counts


def test_the_finest_caption_is_the_lines_in_order_with_who_said_them() -> None:
    lines = [_line(2_000, "Mark it.", "Jake"), _line(0, "I hold  my phone."), _line(3_000, " ")]
    assert finest_caption([*lines, lines[0]]) == "I hold my phone.\nJake: Mark it."


def test_a_local_caption_falls_into_the_sentences_it_was_made_of() -> None:
    lines = [_line(0, "First this. Then that.", "Ann"), _line(1_000, "I nod.")]
    assert caption_sentences(finest_caption(lines)) == ["Ann: First this. Then that.", "I nod."]
    assert caption_sentences("I nod. I leave.") == ["I nod.", "I leave."]


def test_rare_words_are_chosen_before_common_ones_and_stay_in_order() -> None:
    common = "I walk forward.\nI hold my phone."
    finer = [f"{common}\nLucia repairs the guitar.", f"{common}\nJake: The guitar needs strings."]
    chosen = coarser_caption(finer, _counts(*[common] * 20, *finer), most=2)
    assert chosen == "Lucia repairs the guitar.\nJake: The guitar needs strings."


def test_what_was_not_seen_yet_changes_no_caption() -> None:
    finer = ["I wash the cup.\nI see a cow.", "I wash the lamp."]
    earlier = _counts(*finer)
    before = coarser_caption(finer, earlier, most=1)
    later = _counts(*finer, *["I see a cow."] * 50)
    assert coarser_caption(finer, earlier, most=1) == before == "I wash the cup."
    assert later.rarity("cow") / later.rarity("wash") < earlier.rarity("cow") / 2


@given(CAPTIONS, st.integers(1, 8))
def test_an_extract_has_at_most_so_many_sentences_all_of_them_from_the_finer_ones(
    finer: list[str], most: int
) -> None:
    counts = _counts(*finer)
    chosen = caption_sentences(coarser_caption(finer, counts, most))
    given = [sentence for caption in finer for sentence in caption_sentences(caption)]
    assert 0 < len(chosen) <= most
    assert len(set(chosen)) == len(chosen)
    positions = [given.index(sentence) for sentence in chosen]
    assert positions == sorted(positions)
    assert coarser_caption(finer, counts, most).split("\n") == chosen


@given(CAPTIONS)
def test_with_room_for_all_every_word_is_covered(finer: list[str]) -> None:
    said = set(" ".join(finer).split())
    assert set(coarser_caption(finer, _counts(*finer), most=99).split()) == said


def test_nothing_seen_gives_an_empty_caption() -> None:
    assert finest_caption([]) == ""
    assert coarser_caption([], DocumentCounts(), most=8) == ""
