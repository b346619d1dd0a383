"""A talk with real models: the sentence that answers is found, and nothing where nothing is said.

The talk, its questions and the unrelated questions are made up for this test; the models are the
local profile's. Thresholds are well below what is reached, and far above chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from domain.asking import Aim, Mode, Question
from domain.memories import MemoryView, Scope
from domain.settings import Settings
from retrieval.retrievers import Retrievers
from store.database import Store
from store.tables.schema import ClipRow, MemoryRow, VideoRow
from tests.support.ranking import rank, shares

if TYPE_CHECKING:
    from models.toolbox import Toolbox

V = "0123456789abcdef"
CLIP_MS = 30_000
LINE_MS = 5_000

TALK = """
Good evening and welcome to the harbour museum.
My name is Marta Lindqvist, and I have run this house for eleven years.
Tonight I want to tell you how a small town lost its bridge
and why it took us forty years to build another one.
The first bridge was finished in eighteen ninety two.
It was made of iron, painted green, and everybody hated the colour.
Farmers paid two pennies to take a cow across.
The baker crossed it every morning with a cart full of bread.
In the winter of nineteen twenty nine the ice came down the river.
It pushed against the pillars for three days, and on the fourth day the bridge fell.
Nobody was hurt, because the keeper had closed the gates the night before.
His name was Johan, and he was later given a silver watch.
After that people had to take the ferry.
The ferry was slow, and it stopped whenever there was fog.
Children were late for school so often that the teacher moved to our side of the river.
The town council argued about money for a very long time.
One party wanted a tunnel, because a tunnel cannot freeze.
The other party wanted a bridge of concrete, since it would cost half as much.
In the end an engineer from Norway settled the matter.
She showed that the ground was too soft for a tunnel.
So in nineteen sixty nine the new bridge was opened by the king's sister.
It is four hundred metres long and carries six lanes of traffic.
You can still see two pillars of the old bridge next to the café.
We keep the keeper's silver watch in the glass case behind me.
Before we go upstairs, please leave your umbrellas at the door.
The tour takes about twenty minutes and ends in our little shop.
""".strip().split("\n")

OPEN = [
    ("Who runs the museum?", 1),
    ("What was the first bridge made of?", 5),
    ("How much did farmers pay to take a cow across?", 6),
    ("Who crossed the bridge with bread every morning?", 7),
    ("When did the ice come down the river?", 8),
    ("Why was nobody hurt when the bridge fell?", 10),
    ("What was the keeper given?", 11),
    ("When did the ferry stop?", 13),
    ("Why did one party want a tunnel?", 16),
    ("Why did the other party want a concrete bridge?", 17),
    ("Where did the engineer come from?", 18),
    ("Who opened the new bridge?", 20),
    ("How long is the new bridge?", 21),
    ("Where is the silver watch kept?", 23),
    ("What should be left at the door?", 24),
    ("How long does the tour take?", 25),
]

CHOICES = [
    ("What colour was the first bridge?", ("Red", "Green", "Blue", "White"), 1),
    ("Why was there no tunnel?", ("It cost too much", "The ground was too soft", "Ice"), 1),
    ("Who was late for school?", ("The teacher", "The baker", "Children", "The farmers"), 2),
    ("What is the keeper's name?", ("Johan", "Marta", "Peter", "Nils"), 0),
    ("What did people take after the bridge fell?", ("A ferry", "A train", "A balloon"), 0),
    ("How many lanes does the new bridge have?", ("Two", "Four", "Six", "Eight"), 2),
    ("Where does the tour end?", ("In the shop", "At the river", "In the café"), 0),
    ("In which year was the new bridge opened?", ("1892", "1929", "nineteen sixty nine"), 2),
]

UNRELATED = [
    "Which planet has the largest moons?",
    "How do you make a chocolate cake?",
    "Who won the football match on Sunday?",
    "What does the doctor prescribe against fever?",
    "Which programming language is the fastest?",
    "How many legs does a spider have?",
    "What is the price of the new telephone?",
    "Why do cats purr?",
]


@pytest.fixture
def asked(store: Store, toolbox: Toolbox) -> Retrievers:
    """Retrievers over the talk: six lines a clip."""
    vectors = toolbox.text.embed(TALK)
    clips = -(-len(TALK) * LINE_MS // CLIP_MS)
    with store.begin() as session:
        session.add(_video(len(TALK) * LINE_MS))
        session.flush()
        session.add_all(_clip(number) for number in range(clips))
        session.flush()
        session.add_all(_line(i, line, vectors[i].tolist()) for i, line in enumerate(TALK))
    return Retrievers(store, toolbox, Settings())


def _video(duration_ms: int) -> VideoRow:
    return VideoRow(
        id=V,
        title="talk",
        duration_ms=duration_ms,
        width=0,
        height=0,
        has_video=False,
        has_audio=True,
        profile="local",
        state="done",
        models={},
    )


def _clip(number: int) -> ClipRow:
    return ClipRow(
        video_id=V,
        clip=number,
        start_ms=number * CLIP_MS,
        end_ms=(number + 1) * CLIP_MS,
        state="done",
        attempts=0,
        gaps=[],
        text="",
    )


def _line(number: int, text: str, vector: list[float]) -> MemoryRow:
    return MemoryRow(
        video_id=V,
        clip=number * LINE_MS // CLIP_MS,
        kind="episodic",
        text=text,
        start_ms=number * LINE_MS,
        end_ms=number * LINE_MS + LINE_MS - 500,
        source="said",
        speaker="<voice_0>",
        embedding=vector,
    )


def view() -> MemoryView:
    return MemoryView(scopes=(Scope(video=V, last_clip=99),))


def test_the_line_that_answers_is_quoted_first(asked: Retrievers) -> None:
    missed = []
    for text, line in OPEN:
        aim = Aim(text=text, moments=20)
        quote = asked.search(view(), Mode.EVENT, text, aim=aim).quotes[0]
        if not quote.span.start_ms <= line * LINE_MS < quote.span.end_ms:
            missed.append((text, quote.text))
    assert len(missed) <= 0.2 * len(OPEN), missed


def test_the_answer_is_quoted_in_a_whole_sentence(asked: Retrievers) -> None:
    text = "What did a small town lose?"
    aim = Aim(text=text, moments=20)
    quote = asked.search(view(), Mode.EVENT, text, aim=aim).quotes[0]
    assert "lost its bridge and why it took us forty years" in quote.text
    assert quote.span.start_ms == 3 * LINE_MS - LINE_MS


def test_the_option_that_was_said_is_chosen(asked: Retrievers) -> None:
    wrong = []
    for text, options, right in CHOICES:
        relevance = asked._preparation.context(view(), text, options).relevance
        assert relevance is not None
        best = int(shares(relevance).argmax())
        if best != right:
            wrong.append((text, options[best]))
    assert len(wrong) <= 0.25 * len(CHOICES), wrong


def test_what_was_never_said_is_not_close(asked: Retrievers) -> None:
    close = [
        text
        for text in UNRELATED
        if not rank(asked, view(), Question(text=text, videos=(V,))).nothing_close
    ]
    assert len(close) <= 0.25 * len(UNRELATED), close
