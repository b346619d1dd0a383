"""A made-up week of captions: who did what when is found and told.

Everything is generated from a fixed seed, with words for vectors, so it needs no models: it tests
how signals are put together, not how good a model is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from retrieval.ranking import CandidateLines, PreparedQuestion, best_lines
from tests.support.ranking import shares
from tests.support.remembered import WordEmbedder
from tests.support.story import StoryVideo, candidates_at, prepare_question, relevance_of, video_of

PEOPLE = ("Ann", "Bob", "Cleo", "Dora")
DOES = ("washes", "paints", "carries", "repairs", "sells", "hides", "weighs", "photographs")
THINGS = ("cup", "lamp", "guitar", "ladder", "pumpkin", "carpet", "bicycle", "mirror", "kettle")
PLACES = ("kitchen", "garden", "attic", "garage", "street", "cellar")
CHATTER = ("It is warm today", "A phone rings", "We walk on", "Somebody laughs", "A door shuts")
SAID = "This is the {place}, says {who}"
SPEAKERS = {SAID.format(place=place, who=who): who for place in PLACES for who in PEOPLE}
DAY, DAYS, HOURS = 2880, 5, range(8, 20)


@dataclass(frozen=True)
class Deed:
    """Who did what to which thing, in which clip."""

    clip: int
    who: str
    does: str
    thing: str

    @property
    def text(self) -> str:
        return f"{self.who} {self.does} the {self.thing}"


@cache
def week() -> tuple[tuple[tuple[str, ...], ...], tuple[Deed, ...]]:
    """Clips of lines over five days, and the deeds in them: each pair of deed and thing once."""
    random = np.random.default_rng(7)
    story: list[list[str]] = [[] for _ in range(DAYS * DAY)]
    awake = [day * DAY + hour * 120 + i for day in range(DAYS) for hour in HOURS for i in (0, 40)]
    for clip in awake:
        place = PLACES[int(random.integers(len(PLACES)))]
        chatter = [CHATTER[int(random.integers(len(CHATTER)))] for _ in range(3)]
        who = PEOPLE[int(random.integers(len(PEOPLE)))]
        story[clip] = [*chatter, SAID.format(place=place, who=who)]
    pairs = [(does, thing) for does in DOES for thing in THINGS]
    clips = random.choice(awake, size=len(pairs), replace=False)
    deeds = []
    for (does, thing), clip in zip(pairs, clips, strict=True):
        deed = Deed(int(clip), PEOPLE[int(random.integers(len(PEOPLE)))], does, thing)
        story[deed.clip].insert(2, deed.text)
        deeds.append(deed)
    return tuple(map(tuple, story)), tuple(deeds)


@cache
def video() -> StoryVideo:
    story, _ = week()
    return video_of(story, speakers=SPEAKERS)


@cache
def view() -> CandidateLines:
    return until(DAYS * DAY)


def until(last_clip: int) -> CandidateLines:
    return candidates_at(last_clip, video())


def top_clips(asked: PreparedQuestion, seen: CandidateLines, count: int = 3) -> list[int]:
    relevance = relevance_of(seen, asked)
    moments = best_lines(seen, asked, relevance, count)
    return [int(seen.lines.cell_clip[moment.cell]) for moment in moments]


def plain_clips(asked: PreparedQuestion, seen: CandidateLines) -> list[int]:
    """What vectors of whole clips alone find."""
    sums = np.add.reduceat(seen.lines.arrays.vectors, seen.lines.first, axis=0)
    vector = WordEmbedder().embed([asked.text])[0]
    near = np.argsort(-(sums @ vector) / np.linalg.norm(sums, axis=1), kind="stable")[:3]
    return [int(seen.lines.cell_clip[cell]) for cell in near]


def chosen(asked: PreparedQuestion) -> int:
    return int(shares(relevance_of(view(), asked)).argmax())


def who(deed: Deed) -> PreparedQuestion:
    return prepare_question(f"Who {deed.does} the {deed.thing}?", PEOPLE, as_of_s=DAYS * 86_400.0)


def hits(find: Callable[[PreparedQuestion, CandidateLines], list[int]]) -> float:
    """How often the clip of a deed is among the first three, asked who did it."""
    _, deeds = week()
    return float(np.mean([deed.clip in find(who(deed), view()) for deed in deeds]))


def test_the_deed_is_found_and_no_worse_than_by_vectors_alone() -> None:
    found = hits(top_clips)
    assert found >= 0.9
    assert found >= hits(plain_clips)


def test_who_did_it_is_reported() -> None:
    _, deeds = week()
    assert np.mean([PEOPLE[chosen(who(deed))] == deed.who for deed in deeds]) >= 0.75


def test_what_was_done_is_reported() -> None:
    _, deeds = week()
    right = 0
    for deed in deeds:
        others = [does for does in DOES if does != deed.does][:3]
        options = tuple(f"{does} it" for does in (*others, deed.does))
        asked = prepare_question(f"What does {deed.who} do with the {deed.thing}?", options)
        right += chosen(asked) == len(others)
    assert right >= 0.5 * len(deeds)


@pytest.mark.parametrize("day", [2, 3, 4])
def test_yesterday_is_the_day_before_the_question(day: int) -> None:
    _, deeds = week()
    seen = until(day * DAY + DAY - 1)
    things = {deed.thing for deed in deeds if deed.clip // DAY == day - 1}
    right = 0
    for thing in sorted(things):
        question = f"What happened to the {thing} yesterday?"
        asked = prepare_question(question, as_of_s=(day * 24 + 22) * 3600.0)
        right += top_clips(asked, seen)[0] // DAY == day - 1
    assert right >= 0.6 * len(things)


def test_times_as_options_are_reported_by_the_clock() -> None:
    _, deeds = week()
    options = ("Yesterday morning", "Yesterday afternoon", "Three days ago", "An hour ago")
    right = total = 0
    for deed in deeds:
        hour = deed.clip % DAY / 120
        if deed.clip // DAY != DAYS - 2 or 11 < hour < 13:
            continue
        question = f"When was it that {deed.who} {deed.does} the {deed.thing}?"
        asked = prepare_question(question, options, as_of_s=((DAYS - 1) * 24 + 21) * 3600.0)
        assert asked.timed
        right += chosen(asked) == (0 if hour <= 11 else 1)
        total += 1
    assert right >= 0.6 * total


def test_what_comes_later_is_never_found() -> None:
    _, deeds = week()
    for deed in deeds[::6]:
        seen = until(deed.clip - 1)
        asked = prepare_question(
            f"Who {deed.does} the {deed.thing}?", PEOPLE, as_of_s=deed.clip * 30.0
        )
        if seen.lines.cell_count:
            assert all(clip < deed.clip for clip in top_clips(asked, seen, 10))
