"""Real models on real clips: the people seen and heard, what they say, what stands there."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from domain.media import Box, Group, Percept
from domain.settings import WatchSettings
from models.toolbox import Toolbox
from perception.decode import read_clips
from perception.faces_and_voices import box_iou
from perception.perceive_clip import Perceived, perceive
from perception.source import probe
from tests.support.cached_models import CachedModels

SETTINGS = WatchSettings()
DEMO = Path(__file__).parents[2] / "demo"
FRAME_RATE = 25.0
Truth = dict[int, list[tuple[str, tuple[int, int, int, int]]]]


@pytest.fixture(scope="module")
def watch(
    toolbox: Toolbox, shared_media: Callable[[str], Path]
) -> Callable[[str], list[Perceived]]:
    """Perceives a clip once: one of the demo's, or a shared one."""
    find = clip_finder(shared_media)

    @cache
    def watched(name: str) -> list[Perceived]:
        path = find(name)
        return [perceive(raw, toolbox, SETTINGS) for raw in read_clips(path, probe(path), SETTINGS)]

    return watched


def clip_finder(shared_media: Callable[[str], Path]) -> Callable[[str], Path]:
    """Where a clip lies; the demo's own are there everywhere."""
    return lambda name: DEMO / name if (DEMO / name).exists() else shared_media(name)


def who_is(group: Group, truth: Truth) -> Counter[str]:
    """How often each true person stands where the group's sightings are."""
    return Counter(
        who
        for sighting in group.sightings
        if sighting.box is not None
        for who, box in truth.get(round(sighting.span.start_ms * FRAME_RATE / 1000), [])
        if box_iou(corners(sighting.box), box) > 0.4
    )


def corners(box: Box) -> tuple[int, int, int, int]:
    return box.x0, box.y0, box.x1, box.y1


def words(percepts: list[Perceived]) -> str:
    return " ".join(u.text for one in percepts for u in one.percept.utterances).casefold()


def every(percept: Percept) -> Iterator[tuple[int, int]]:
    for utterance in percept.utterances:
        yield utterance.span.start_ms, utterance.span.end_ms
    for group in (*percept.faces, *percept.voices):
        yield from ((s.span.start_ms, s.span.end_ms) for s in group.sightings)
    yield from ((key.time_ms, key.time_ms) for key in percept.keyframes)


@pytest.mark.full
def test_three_people_at_a_table_are_three_faces(
    watch: Callable[[str], list[Perceived]], shared_media: Callable[[str], Path]
) -> None:
    (seen,) = watch("msdwild_00001.mp4")
    path = shared_media("msdwild_00001_faces.csv")
    truth: Truth = {}
    with path.open() as file:
        for frame, _, who, x0, y0, x1, y1, *_ in csv.reader(file):
            box = (int(x0), int(y0), int(x1), int(y1))
            truth.setdefault(int(frame), []).append((who, box))
    people = [who_is(group, truth) for group in seen.percept.faces]
    main = [counts.most_common(1)[0][0] for counts in people if counts]
    assert sorted(main) == ["0", "1", "2"]
    assert all(len(counts) == 1 and counts.total() >= 15 for counts in people)


@pytest.mark.full
def test_what_they_say_is_given_to_the_right_one(watch: Callable[[str], list[Perceived]]) -> None:
    found = watch("msdwild_00001.mp4")
    assert "half korean" in words(found)
    assert "covid" in words(found)
    said = found[0].percept.utterances
    asks = next(u for u in said if "do you feel good" in u.text.casefold())
    answers = next(u for u in said if "part of that" in u.text.casefold())
    assert asks.voice is not None
    assert answers.voice is not None
    assert asks.voice != answers.voice


@pytest.mark.full
@pytest.mark.parametrize(
    "name", ["msdwild_00001.mp4", "googlework_short.mp4", "audio/pyannote_sample.flac"]
)
def test_all_lies_within_its_clip(name: str, watch: Callable[[str], list[Perceived]]) -> None:
    for one in watch(name):
        span = one.percept.clip.span
        for start, end in every(one.percept):
            assert span.start_ms <= start <= end <= span.end_ms
        groups = {group.number for group in one.percept.voices}
        assert {u.voice for u in one.percept.utterances} <= {*groups, None}


@pytest.mark.full
def test_a_second_look_perceives_the_same(
    watch: Callable[[str], list[Perceived]],
    toolbox: CachedModels,
    shared_media: Callable[[str], Path],
) -> None:
    path = clip_finder(shared_media)("googlework_short.mp4")
    again = next(read_clips(path, probe(path), SETTINGS, first_clip=1))
    assert perceive(again, toolbox.anew, SETTINGS) == watch("googlework_short.mp4")[1]
