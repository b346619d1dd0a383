"""Times anchored to events: the right occurrence, and what lies before, after and between."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from domain.errors import InputError
from domain.time import TimeSpan
from retrieval.relevance import CosineScale
from strategies.event_documents import EVENT, EventDocument, EventDocuments, mean_direction
from strategies.vam.times import (
    AnchorMatch,
    EventAnchor,
    TimeRange,
    anchor_matches,
    clock_words,
    occurrences,
    resolve,
    timed_question,
)
from tests.support.asking import WordToolbox

TIMES: TypeAdapter[TimeRange] = TypeAdapter(TimeRange)
MINUTE = 60_000
ACTIONS = (
    "waters the plants on the balcony",
    "feeds the grey cat",
    "carries a ladder through the yard",
    "opens the red toolbox",
    "rings the door bell",
    "lights the fireplace",
)
FILLERS = (
    "the street is empty",
    "rain falls on the window",
    "a lorry stands at the corner",
    "music plays from the kitchen",
    "two chairs are at the table",
    "the curtains move in the wind",
)
PEOPLE = ("Mia", "Omar", "Lena")
ANCHOR = {"q": "a knock"}


class MadeUpVideo(NamedTuple):
    """A video of events: their spans and texts, and when each repeated action took place."""

    documents: EventDocuments
    happened: dict[str, list[TimeSpan]]
    end_ms: int


def made_up(seed: int) -> MadeUpVideo:
    """A video of 30 events; three actions recur, one of them also in the event that follows."""
    draw, toolbox = random.Random(seed), WordToolbox()
    actions = [f"{draw.choice(PEOPLE)} {action}" for action in draw.sample(ACTIONS, 3)]
    texts: list[list[str]] = [draw.sample(FILLERS, 2) for _ in range(30)]
    happened: dict[str, list[TimeSpan]] = {}
    bounds = [0]
    for _ in texts:
        bounds.append(bounds[-1] + draw.randrange(20_000, 5 * MINUTE))
    places = draw.sample(range(0, 30, 3), 9)
    for number, action in enumerate(actions):
        mine, spans = sorted(places[number * 3 : number * 3 + 3]), []
        for place in mine:
            long = number == 0 and place == mine[1]
            for at in (place, place + 1) if long else (place,):
                texts[at].insert(draw.randrange(3), action)
            spans.append(TimeSpan.of(bounds[place], bounds[place + (2 if long else 1)]))
        happened[action] = spans
    documents = [
        EventDocument(
            level=EVENT,
            from_clip=0,
            number=number,
            span=TimeSpan.of(bounds[number], bounds[number + 1]),
            text="\n".join(lines),
            vector=mean_direction(toolbox.text.embed(lines)),
        )
        for number, lines in enumerate(texts)
    ]
    draw.shuffle(documents)
    return MadeUpVideo(EventDocuments(documents, CosineScale(0.0)), happened, bounds[-1])


def ask(video: MadeUpVideo, **times: object) -> TimeSpan:
    def find(anchor: EventAnchor) -> list[AnchorMatch]:
        (vector,) = WordToolbox().text.embed([anchor.q])
        found = anchor_matches(video.documents, anchor.q, vector, anchor.threshold, anchor.top_k)
        return [*found]

    return resolve(TIMES.validate_python(times), video.end_ms, find)


@pytest.mark.parametrize("seed", range(12))
def test_anchored_times_of_made_up_videos_are_all_right(seed: int) -> None:
    video = made_up(seed)
    for action, spans in video.happened.items():
        for number, span in enumerate(spans, 1):
            anchor = {"q": action, "occurrence": number}
            near = {"kind": "anchored", "anchor": anchor, "within_s": 90}
            start, end = span.start_ms, span.end_ms
            assert ask(video, **near, relation="before") == TimeSpan.of(
                max(0, start - 90_000), start
            )
            after = min(end + 90_000, video.end_ms)
            assert ask(video, **near, relation="after") == TimeSpan.of(end, after)
            around = TimeSpan.of(max(0, start - 90_000), after)
            assert ask(video, **near, relation="around") == around
        for other, others in video.happened.items():
            if other == action:
                continue
            found = ask(
                video,
                kind="between",
                first={"q": action, "occurrence": 2},
                second={"q": other, "occurrence": 3},
            )
            one, two = sorted([spans[1], others[2]], key=lambda span: span.start_ms)
            assert found == TimeSpan.of(one.end_ms, two.start_ms)


def test_an_occurrence_that_there_is_not_is_said() -> None:
    video = made_up(1)
    action = next(iter(video.happened))
    with pytest.raises(InputError, match="was found 3 times, so there is no occurrence 4"):
        ask(
            video,
            kind="anchored",
            relation="after",
            within_s=5,
            anchor={"q": action, "occurrence": 4},
        )
    with pytest.raises(InputError, match="was found 0 times"):
        ask(
            video,
            kind="anchored",
            relation="after",
            within_s=5,
            anchor={"q": "Submarines surface near icebergs"},
        )


def test_events_that_follow_each_other_are_one_occurrence() -> None:
    spans = [TimeSpan.of(number * MINUTE, (number + 1) * MINUTE) for number in range(6)]
    matches = [AnchorMatch(number, spans[number]) for number in (4, 0, 1, 5)]
    assert occurrences(matches) == [TimeSpan.of(0, 2 * MINUTE), TimeSpan.of(4 * MINUTE, 6 * MINUTE)]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({"kind": "relative", "last_s": 60}, (540_000, 600_000)),
        ({"kind": "relative", "last_s": 6_000}, (0, 600_000)),
        ({"kind": "absolute", "start_s": 1.5, "end_s": 2}, (1_500, 2_000)),
        ({"kind": "absolute", "start_s": 599, "end_s": 10_000}, (599_000, 600_000)),
        ({"kind": "absolute", "start_s": 1e9, "end_s": 1e10}, (600_000, 600_000)),
    ],
)
def test_relative_and_absolute_end_now(times: dict[str, object], expected: tuple[int, int]) -> None:
    found = resolve(TIMES.validate_python(times), 600_000, lambda anchor: [])
    assert found == TimeSpan.of(*expected)


@pytest.mark.parametrize(
    "times",
    [
        {"kind": "relative", "last_s": 0},
        {"kind": "relative", "last_s": 5, "first_s": 3},
        {"kind": "absolute", "start_s": 5, "end_s": 5},
        {"kind": "absolute", "start_s": float("nan"), "end_s": 5},
        {"kind": "yesterday"},
        {"kind": "anchored", "relation": "during", "anchor": ANCHOR, "within_s": 5},
        {"kind": "anchored", "relation": "after", "anchor": ANCHOR, "within_s": 604_801},
        {"kind": "between", "first": ANCHOR},
        *(
            {"kind": "between", "first": ANCHOR, "second": {**ANCHOR, **wrong}}
            for wrong in (
                {"q": ""},
                {"top_k": 0},
                {"top_k": 51},
                {"inspect_k": 21},
                {"top_k": 3, "inspect_k": 4},
                {"occurrence": 0},
                {"occurrence": 101},
                {"verify": "x" * 401},
                {"threshold": -1},
                {"colour": "red"},
            )
        ),
    ],
)
def test_times_outside_of_the_schema_are_refused(times: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TIMES.validate_python(times)


def test_a_document_is_found_by_the_words_of_one_line() -> None:
    toolbox = WordToolbox().text
    texts = ["a cat sleeps\nOmar feeds a dog", "a dog sleeps\nOmar reads"]
    vectors = [mean_direction(toolbox.embed(text.split("\n"))) for text in texts]
    documents = EventDocuments(
        [
            EventDocument(EVENT, number, text, TimeSpan.of(number, number + 1), 0, vector=vector)
            for number, (text, vector) in enumerate(zip(texts, vectors, strict=True))
        ],
        CosineScale(0.0),
    )
    (vector,) = toolbox.embed(["a dog sleeps"])
    scores = documents.scores("a dog sleeps", vector)
    assert scores[1] == 1.0 > scores[0]
    assert [one.number for one, _ in documents.matches("a dog sleeps", vector, 0.0, 1)] == [1]
    assert np.all((scores >= 0) & (scores <= 1))


# Times of day in VAM: read in questions, and found in the video time of a stream.


BEGAN = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)
"""Seven in the morning in New York."""
HOUR = 3_600_000
NOW = 30 * HOUR


@pytest.fixture(autouse=True)
def _in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def minutes(start: float, end: float) -> TimeSpan:
    return TimeSpan.of(round(start * 60_000), round(end * 60_000))


def found(**times: str) -> TimeSpan:
    return resolve(TIMES.validate_python({"kind": "clock", **times}), NOW, lambda _: [], BEGAN)


def test_a_time_of_day_is_that_of_this_machine_and_the_latest_before_now() -> None:
    assert found(start="8:30") == minutes(25.5 * 60, 25.5 * 60 + 1)
    assert found(start="14:05") == minutes(7 * 60 + 5, 7 * 60 + 6), "now is 13:00 on the next day"
    assert found(start="14:05", end="14:30") == minutes(7 * 60 + 5, 7 * 60 + 30)
    assert found(start="23:50", end="0:10") == minutes(16 * 60 + 50, 17 * 60 + 10)


def test_a_day_may_be_named() -> None:
    assert found(start="8:30", day="yesterday") == minutes(90, 91)
    assert found(start="8:30", day="2026-01-10") == minutes(90, 91)
    assert found(start="8:30", day="today") == minutes(25.5 * 60, 25.5 * 60 + 1)
    assert found(start="8:30", day="2026-01-01").length_ms == 0, "the stream had not begun"
    assert found(start="14:05", day="today").length_ms == 0, "it is in the future"


def test_without_a_start_on_record_it_is_refused() -> None:
    times = TIMES.validate_python({"kind": "clock", "start": "14:05"})
    with pytest.raises(InputError, match="not on record"):
        resolve(times, NOW, lambda _: [])


@pytest.mark.parametrize(
    "wrong",
    [
        {"start": "25:00"},
        {"start": "14:05", "end": "14:61"},
        {"start": "noon"},
        {"start": "14:05", "day": "2026-13-40"},
        {"start": "14:05", "day": "0001-01-01"},
        {"start": "14:05", "day": "9999-12-31"},
        {"start": "14:05", "zone": "UTC"},
    ],
)
def test_what_is_no_time_of_day_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        TIMES.validate_python({"kind": "clock", **wrong})


def test_a_span_is_named_with_its_day() -> None:
    assert clock_words(BEGAN, minutes(65, 67)) == "2026-01-10 08:05:00 to 08:07:00"
    over_midnight = clock_words(BEGAN, minutes(16.5 * 60, 17.5 * 60))
    assert over_midnight == "2026-01-10 23:30:00 to 2026-01-11 00:30:00"


@pytest.mark.parametrize(
    ("question", "start", "end", "day", "query"),
    [
        ("What happened at 14:05?", "14:05", "", "", ""),
        ("What was going on between 14:00 and 14:30?", "14:00", "14:30", "", ""),
        ("What happened yesterday at 2:05 pm?", "14:05", "", "yesterday", ""),
        ("Who rang from 9:00 to 9:15 am on 2026-01-11?", "9:00", "9:15", "2026-01-11", "Who rang?"),
        ("Was geschah gestern um 14:05 Uhr?", "14:05", "", "yesterday", ""),
        ("What happened between 11:30 and 12:30 pm?", "11:30", "12:30", "", ""),
        ("What happened from 10:00 to 1:00 am?", "22:00", "1:00", "", ""),
        ("What happened between 11:00 am and 1:00?", "11:00", "13:00", "", ""),
        ("What happened from 11:00 pm to 1:00?", "23:00", "1:00", "", ""),
        ("Who fixed the bike around 8:10:30?", "8:10:30", "", "", "Who fixed the bike?"),
    ],
)
def test_questions_name_times(question: str, start: str, end: str, day: str, query: str) -> None:
    read = timed_question(question)
    assert read is not None
    assert (read.times.start, read.times.end, read.times.day) == (start, end, day)
    assert read.query == query


@pytest.mark.parametrize(
    "question",
    [
        "When does the 10:15 train leave?",
        "What happened at 25:70?",
        "What happened at 1:02:03:04?",
        "What is the score of 3:1?",
        "Who came at noon?",
    ],
)
def test_other_questions_name_none(question: str) -> None:
    assert timed_question(question) is None
