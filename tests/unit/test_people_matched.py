"""Who is in view, alone, and who is whom across clips: in any order, by milliseconds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from domain.media import Box, Group, IdentityKind, Sighting
from domain.time import TimeSpan, merge_close_spans
from people.characters import (
    MIN_SPEECH_MS,
    VISIBLE_GAP_MS,
    spans_alone,
    speaking_alone,
    visible_spans,
)
from people.identities import (
    NEAR_DUPLICATE,
    choose_exemplars,
    co_occur,
    group_vector,
    match_identities,
    normalise_rows,
)
from perception.faces_and_voices import cluster
from tests.support.memory import direction, face, percept, voice

TIMES = st.integers(0, 6000)
SPANS = st.lists(
    st.tuples(TIMES, st.integers(0, 1500)).map(lambda p: TimeSpan.of(p[0], p[0] + p[1])),
    min_size=1,
    max_size=5,
)
SCENES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=5)
VECTORS = st.lists(
    st.lists(st.floats(-1, 1), min_size=3, max_size=3), min_size=1, max_size=8
).filter(lambda rows: all(np.linalg.norm(row) > 0.1 for row in rows))
angles = st.lists(st.integers(0, 359).map(float), min_size=1, max_size=14)
thresholds = st.sampled_from([-0.5, 0.0, 0.3, 0.7, 0.95])


def covered(spans: list[TimeSpan]) -> set[int]:
    return {ms for span in spans for ms in range(span.start_ms, span.end_ms)}


@given(SPANS, st.integers(0, 2000))
def test_stretches_cover_all_of_it_and_no_gap_that_is_long(spans: list[TimeSpan], gap: int) -> None:
    merged = merge_close_spans(spans, gap)
    assert covered(spans) <= covered(merged)
    assert merged == merge_close_spans(list(reversed(spans)), gap)
    assert merged == merge_close_spans(merged, gap)
    for one, following in itertools.pairwise(merged):
        assert following.start_ms - one.end_ms > gap
    edges = {edge for span in spans for edge in (span.start_ms, span.end_ms)}
    assert {edge for span in merged for edge in (span.start_ms, span.end_ms)} <= edges
    # Runs of whole numbers, half-open.
    places = covered(merged) - covered(spans)
    ordered = sorted(places)
    starts = [n for n in ordered if n - 1 not in places]
    for low, high in zip(starts, [n + 1 for n in ordered if n + 1 not in places], strict=True):
        assert high - low <= gap


def group(number: int, spans: list[TimeSpan], kind: IdentityKind = IdentityKind.FACE) -> Group:
    seen = [Sighting(span=span, score=1, quality=1, vector=(1.0,)) for span in spans]
    return Group(kind=kind, number=number, sightings=tuple(seen))


@given(st.lists(SPANS, min_size=1, max_size=4))
def test_alone_is_in_view_without_anybody_else(shown: list[list[TimeSpan]]) -> None:
    groups = [group(number, spans) for number, spans in enumerate(shown)]
    free = spans_alone(groups)
    times = {one.number: covered(visible_spans(one)) for one in groups}
    for number, spans in free.items():
        others = set().union(*(times[n] for n in times if n != number))
        assert covered(spans) == times[number] - others


@given(SPANS, SPANS, SPANS)
def test_seconds_of_a_voice_with_one_face_are_counted_to_the_millisecond(
    face: list[TimeSpan], other: list[TimeSpan], voice: list[TimeSpan]
) -> None:
    one = percept(
        0, faces=(group(0, face), group(1, other)), voices=(group(0, voice, IdentityKind.VOICE),)
    )
    found = {number: seconds for number, _, seconds in speaking_alone(one)}
    heard = covered(merge_close_spans(voice, VISIBLE_GAP_MS))
    for number, spans in spans_alone(one.faces).items():
        shared = len(covered(spans) & heard)
        assert found.get(number, 0) == pytest.approx(
            shared / 1000 if shared >= MIN_SPEECH_MS else 0
        )


def seen(who: int, at: int, noise: int, kind: IdentityKind = IdentityKind.FACE) -> Group:
    """A group of one sighting; people are axes, ``noise`` tilts a little towards a hidden one."""
    vector = np.zeros(8)
    vector[who], vector[7] = 1.0, 0.01 * noise
    box = Box(x0=0, y0=0, x1=1, y1=1)
    one = Sighting(
        span=TimeSpan.of(1000 * at, 1000 * at + 500),
        box=box,
        score=1,
        quality=1,
        vector=tuple((vector / np.linalg.norm(vector)).tolist()),
    )
    return Group(kind=kind, number=noise, sightings=(one,))


@given(SCENES, st.permutations(range(4)), st.data())
def test_who_is_whom_does_not_depend_on_the_order_of_groups_or_of_the_known(
    made: list[tuple[int, int]], order: list[int], data: st.DataObject
) -> None:
    groups = [seen(who, at, noise) for noise, (who, at) in enumerate(made)]
    centres = np.eye(8)[:4].tolist()
    plain = match_identities(groups, centres, 0.5)
    mixed = data.draw(st.permutations(range(len(groups))))
    again = match_identities([groups[n] for n in mixed], [centres[n] for n in order], 0.5)
    for place, n in enumerate(mixed):
        pick = again[place]
        assert plain[n] == (None if pick is None else order[pick])


@given(SCENES)
def test_the_known_are_found_unless_two_are_seen_at_once(made: list[tuple[int, int]]) -> None:
    groups = [seen(who, at, noise) for noise, (who, at) in enumerate(made)]
    found = match_identities(groups, np.eye(8)[:4].tolist(), 0.5)
    for one, (who, _), pick in zip(groups, made, found, strict=True):
        rivals = [
            other
            for other, (same, _) in zip(groups, made, strict=True)
            if same == who and other is not one and co_occur(one, other)
        ]
        assert pick == who if who < 4 and not rivals else pick in (None, who)


@given(VECTORS, st.data(), st.integers(1, 5), st.floats(-1, 1))
def test_what_is_stored_of_somebody_is_good_varied_and_never_nothing(
    vectors: list[list[float]], data: st.DataObject, keep: int, threshold: float
) -> None:
    qualities = data.draw(
        st.lists(st.integers(0, 50), min_size=len(vectors), max_size=len(vectors))
    )
    chosen = choose_exemplars(qualities, vectors, keep, threshold)
    assert 1 <= len(chosen) <= keep
    assert len(set(chosen)) == len(chosen)
    rows = normalise_rows(vectors)
    for one, other in itertools.combinations(chosen, 2):
        assert float(rows[one] @ rows[other]) < NEAR_DUPLICATE + 1e-9
    fits = rows @ normalise_rows(rows.mean(axis=0))[0] >= threshold
    usable = [q for q, good in zip(qualities, fits, strict=True) if good] or qualities
    assert qualities[chosen[0]] == max(usable)


def centre(*who: int) -> list[float]:
    return [float(one) for one in np.mean([direction(one) for one in who], axis=0)]


def test_a_cosine_at_the_threshold_is_a_match() -> None:
    exact = float(group_vector(face(0, 1, (0, 1))) @ np.asarray(centre(1, 2)))
    assert match_identities([face(0, 1, (0, 1))], [centre(1, 2)], exact - 1e-9) == [0]
    assert match_identities([face(0, 1, (0, 1))], [centre(1, 2)], exact + 1e-6) == [None]


def test_of_two_faces_seen_together_the_better_match_wins_and_the_other_is_new() -> None:
    near = face(0, 1, (0, 1))
    mixed = np.asarray(direction(1)) * 0.8 + np.asarray(direction(2)) * 0.6
    blurred = near.sightings[0].model_copy(update={"vector": tuple(mixed / np.linalg.norm(mixed))})
    far = Group(kind=near.kind, number=1, sightings=(blurred,))
    assert match_identities([far, near], [centre(1)], 0.5) == [None, 0]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((0, 1), (1, 2), False),
        ((0, 1), (0.5, 2), True),
        ((1, 1), (1, 1), True),
        ((0, 0), (1, 1), False),
    ],
)
def test_sightings_at_one_instant_are_together(
    one: tuple[float, float], other: tuple[float, float], expected: bool
) -> None:
    assert co_occur(face(0, 1, one), face(1, 2, other)) is expected


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=6), st.permutations(range(5))
)
def test_no_two_of_one_moment_share_identity(seen: list[tuple[int, int]], order: list[int]) -> None:
    groups = [voice(n, who, (at, at + 1)) for n, (who, at) in enumerate(seen)]
    picks = match_identities(groups, [centre(1000 + who) for who in order], 0.5)
    for a, group in enumerate(groups):
        for b in range(a):
            same = picks[a] is not None and picks[a] == picks[b]
            assert not (same and co_occur(group, groups[b]))
    for group, (who, _), pick in zip(groups, seen, picks, strict=True):
        assert pick is None or order[pick] == who, group.number


def around(angles: list[float]) -> NDArray[np.float32]:
    """Unit vectors in a plane, by degrees."""
    radians = np.radians(angles)
    return np.stack([np.cos(radians), np.sin(radians)], 1).astype(np.float32)


def test_one_alone_is_a_group() -> None:
    assert cluster(around([17]), 0.5) == [0]
    assert cluster(np.zeros((0, 4), np.float32), 0.5) == []


def test_a_chain_does_not_join_its_ends() -> None:
    # Each is like its neighbour, the ends are not alike: the mean keeps them apart.
    labels = cluster(around([0, 40, 80, 120, 160]), 0.6)
    assert labels[0] != labels[-1]


def test_seeds_are_where_groups_begin() -> None:
    assert cluster(around([0, 180, 90]), 0.5, seeds=[5, 5, 9]) == [0, 0, 1]


@given(angles, thresholds)
def test_groups_left_over_are_not_alike(found: list[float], threshold: float) -> None:
    vectors = around(found)
    labels = np.array(cluster(vectors, threshold))
    groups = [vectors[labels == n] for n in range(labels.max() + 1)]
    for i, one in enumerate(groups):
        for other in groups[i + 1 :]:
            assert float((one @ other.T).mean()) < threshold + 1e-6


@given(angles, thresholds, st.data())
def test_no_forbidden_pair_joins(found: list[float], threshold: float, data: st.DataObject) -> None:
    count = len(found)
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    apart = np.zeros((count, count), bool)
    for a, b in data.draw(st.lists(pairs, max_size=10)):
        if a != b:
            apart[a, b] = apart[b, a] = True
    labels = cluster(around(found), threshold, apart)
    assert not any(apart[i, j] and labels[i] == labels[j] for i in range(count) for j in range(i))
