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
from perception.faces import box_iou
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
        raws = read_clips(path, probe(path), SETTINGS)
        return [perceive(raw, toolbox, SETTINGS) for raw in raws]

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


def true_turns(path: Path) -> list[tuple[float, float, str]]:
    """Start, end and speaker of each turn of an RTTM file."""
    rows = [line.split() for line in path.read_text().splitlines() if line.startswith("SPEAKER")]
    return [(float(r[3]), float(r[3]) + float(r[4]), r[7]) for r in rows]


def speakers_of(group: Group, turns: list[tuple[float, float, str]]) -> Counter[str]:
    """Milliseconds that each true speaker speaks within the group's sightings."""
    shared: Counter[str] = Counter()
    for sighting in group.sightings:
        start, end = sighting.span.start_ms / 1000, sighting.span.end_ms / 1000
        for low, high, who in turns:
            shared[who] += max(0, round(1000 * (min(end, high) - max(start, low))))
    return shared


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
def test_two_people_who_talk_are_two_voices(
    watch: Callable[[str], list[Perceived]], shared_media: Callable[[str], Path]
) -> None:
    (heard,) = watch("msdwild_00001.mp4")
    turns = true_turns(shared_media("msdwild_00001.rttm"))
    speakers = [speakers_of(group, turns) for group in heard.percept.voices]
    assert {counts.most_common(1)[0][0] for counts in speakers} == {"spk0", "spk2"}
    assert all(c.most_common(1)[0][1] >= 0.8 * c.total() for c in speakers)


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
def test_a_call_between_two_has_two_voices(
    watch: Callable[[str], list[Perceived]], shared_media: Callable[[str], Path]
) -> None:
    (heard,) = watch("audio/pyannote_sample.flac")
    turns = true_turns(shared_media("audio/pyannote_sample.rttm"))
    speakers = [speakers_of(group, turns) for group in heard.percept.voices]
    assert sorted(c.most_common(1)[0][0] for c in speakers) == ["speaker90", "speaker91"]
    assert "new jersey" in words([heard])
    seen = heard.percept
    assert (seen.keyframes, seen.faces, seen.screen_texts) == ((), (), ())


@pytest.mark.full
def test_a_name_on_the_screen_is_read(watch: Callable[[str], list[Perceived]]) -> None:
    texts = [t for one in watch("googlework_short.mp4") for t in one.percept.screen_texts]
    read = [text.text.casefold() for text in texts]
    assert "omar" in read
    assert "software engineer" in read


@pytest.mark.full
def test_a_lone_speaker_is_one_face(watch: Callable[[str], list[Perceived]]) -> None:
    last = watch("googlework_short.mp4")[1].percept
    assert [len(group.sightings) >= 3 for group in last.faces] == [True]


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
