"""Detects the faces of one clip, diarises its speech, and groups both by person (section 3.1).

About a frame a second is looked at, and every keyframe. A face that stays in its place within a
shot is one track; tracks are merged by the likeness of their embeddings. A picture of a face that
never moves is none.

Speech is cut into windows of 1.5 s; their embeddings are clustered; what is too small to be a
person is given to the voice it is most like; windows of one voice in a row are a turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from domain.media import Box, Group, IdentityKind, Sighting
from domain.time import TimeSpan
from models.onnx import map_in_threads

if TYPE_CHECKING:
    from domain.media import Clip
    from domain.settings import WatchSettings
    from models.ports import Face, FaceEngine, Image, Samples, SpeakerEncoder, Vector
    from perception.frames import Frame
    from perception.images import Blobs


# Distances are 2 - cosine, in [1, 3]: less than all of them, and more than any mean without such a
# pair.
_TOGETHER, _APART = 0.0, 1e9


def cluster(
    vectors: NDArray[np.float32],
    threshold: float,
    cannot_link: NDArray[np.bool_] | None = None,
    seeds: Sequence[int] | None = None,
) -> list[int]:
    """Merge the two most similar groups until no pair reaches the threshold.

    Two groups are as alike as the mean cosine between a vector of one and a vector of the other.

    Args:
        vectors: N x D, L2-normalised.
        threshold: groups are merged at this mean cosine or above.
        cannot_link: N x N, symmetric; True where two vectors must not share a group.
        seeds: groups to begin with, one number a vector; each vector alone by default.

    Returns:
        The group of each vector, numbered from 0 in order of first appearance.
    """
    if len(vectors) < 2:
        return [0] * len(vectors)
    exact = vectors.astype(np.float64)
    distances = 2 - exact @ exact.T
    if cannot_link is not None:
        distances[cannot_link] = _APART
    if seeds is not None:
        of_seed = np.asarray(seeds)
        distances[of_seed[:, None] == of_seed] = _TOGETHER
    tree = linkage(distances[np.triu_indices(len(distances), 1)], "average")
    return renumber(fcluster(tree, 2 - threshold, "distance").tolist())


def group_by_label(labels: Sequence[int], indices: Sequence[int]) -> list[list[int]]:
    """Return the indices of each label, labels in order of first appearance."""
    groups: dict[int, list[int]] = {}
    for label, index in zip(labels, indices, strict=True):
        groups.setdefault(label, []).append(index)
    return list(groups.values())


def renumber(labels: Sequence[int]) -> list[int]:
    """Renumber labels from 0 in order of first appearance."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(label, len(numbers)) for label in labels]


# Detects faces of still images: statues, paintings, photos and posters that a camera rests on.
#
# A heuristic. Whoever lives and is seen from near enough to be recognised moves within seconds:
# eyes, mouth, head, light on the skin. So where every look at a face finds the same pixels in the
# same place, but for what compression changes, it is taken for a picture, which neither acts nor
# speaks.
#
# It is meant to miss rather than to lose a person. Nothing is said of a face that was looked at too
# seldom, that moved once, that was seen in a shot for one look alone, or whose pixels show nothing.
# Where the camera moves, and so the picture on the screen, it stays a person.

_CELLS = 16
"""Cells a face is compared in, each way: enough for an eye, too few for noise."""
_CHANGE_PERCENTILE = 95
"""Percentile of the cells' changes that counts: one twentieth may be flicker of the background."""
_MIN_SIDE = 8
_MIN_DETAIL = 5.0
"""Standard deviation of grey from which a crop shows anything that could move."""


def is_still_image(tracks: Sequence[Sequence[DetectedFace]], settings: WatchSettings) -> bool:
    """Tell whether all detections of one face show a still image.

    Args:
        tracks: the looks at it, each track in order in one place of one shot.
        settings: how many looks it takes, and how little may change between them.
    """
    if sum(map(len, tracks)) < settings.still_looks or min(map(len, tracks)) < 2:
        return False
    pairs = (pair for track in tracks for pair in pairwise(track))
    return all(_change(a, b) <= settings.still_change for a, b in pairs)


def _change(a: DetectedFace, b: DetectedFace) -> float:
    """Return how much the face changed between two detections, in levels of grey (0-255)."""
    (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1) = a.face.box, b.face.box
    box = max(ax0, bx0), max(ay0, by0), min(ax1, bx1), min(ay1, by1)
    if min(box[2] - box[0], box[3] - box[1]) < _MIN_SIDE:
        return float("inf")
    one, other = _cells(a, box), _cells(b, box)
    if min(one.std(), other.std()) < _MIN_DETAIL:
        return float("inf")
    return float(np.percentile(np.abs(one - other), _CHANGE_PERCENTILE))


def _cells(face: DetectedFace, box: tuple[int, int, int, int]) -> NDArray[np.float32]:
    """Return the mean grey of the cells of a box that lies within the crop; 16 x 16."""
    (x0, y0), (left, top) = box[:2], face.corner
    face_pixels = face.crop[y0 - top : box[3] - top, x0 - left : box[2] - left]
    grey = cv2.cvtColor(face_pixels, cv2.COLOR_RGB2GRAY)
    return np.asarray(cv2.resize(grey, (_CELLS, _CELLS), interpolation=cv2.INTER_AREA), np.float32)


_MIN_TRACK_IOU = 0.5
"""Intersection over union from which a face is taken to have stayed where it was."""
_CROP_MARGIN = 0.3
"""How much of its size is added around a face on each side of its crop."""


@dataclass(frozen=True, eq=False)
class DetectedFace:
    """A face on a frame: index of the searched frame, shot, time and crop.

    ``corner`` is where on the frame the crop's upper left is.
    """

    sample: int
    shot: int
    time_ms: int
    face: Face
    crop: Image
    corner: tuple[int, int] = (0, 0)


def find_faces(
    frames: Sequence[Frame],
    shots: Sequence[int],
    keyframes: Collection[int],
    engine: FaceEngine,
    settings: WatchSettings,
) -> list[DetectedFace]:
    """Detect faces on about one frame a second and on the frames in ``keyframes`` (indices).

    Faces that the model itself would not recognise a person by are left out.
    """
    first: dict[int, int] = {}
    for index, frame in enumerate(frames):
        first.setdefault(frame.time_ms // settings.face_interval_ms, index)
    samples = sorted({*first.values(), *keyframes})
    detected: list[DetectedFace] = []
    for sample, index in enumerate(samples):
        image = frames[index].image
        for face in engine.faces(image):
            # The paper's thresholds belong to its model; another says its own, on its own scale.
            if face.score < min(settings.face_score, engine.min_score) or face.quality <= min(
                settings.face_quality, engine.min_quality
            ):
                continue
            x0, y0, x1, y1 = face.box
            dx, dy = round((x1 - x0) * _CROP_MARGIN), round((y1 - y0) * _CROP_MARGIN)
            left, top = max(0, x0 - dx), max(0, y0 - dy)
            # A copy: a clip's frames are let go once its faces are found.
            crop = image[top : y1 + dy, left : x1 + dx].copy()
            at = frames[index].time_ms
            detected.append(DetectedFace(sample, shots[index], at, face, crop, (left, top)))
    return detected


# Two faces on one frame are two people, whatever they look like, and one lone face is a person.
def group_faces(
    detected: Sequence[DetectedFace],
    same_person: float,
    clip: Clip,
    settings: WatchSettings,
    blobs: Blobs,
) -> tuple[Group, ...]:
    """Group faces by person, in order of first appearance; the best sighting has a crop."""
    if not detected:
        return ()
    vectors = np.stack([s.face.vector for s in detected])
    samples = np.array([s.sample for s in detected])
    same_frame = samples[:, None] == samples[None, :]
    np.fill_diagonal(same_frame, val=False)
    tracks = list(range(len(detected)))
    by_sample: dict[int, list[int]] = {}
    for index, face in enumerate(detected):
        by_sample.setdefault(face.sample, []).append(index)
    for before, now in pairwise(sorted(by_sample)):
        if now == before + 1:
            for a, b in _match_boxes(by_sample[before], by_sample[now], detected):
                tracks[b] = tracks[a]
    labels = cluster(vectors, same_person, same_frame, tracks)
    persons = [
        [detected[index] for index in person]
        for person in group_by_label(labels, range(len(detected)))
        if not is_still_image(
            [
                [detected[i] for i in one]
                for one in group_by_label([tracks[index] for index in person], person)
            ],
            settings,
        )
    ]
    in_order = sorted(persons, key=lambda person: (person[0].time_ms, person[0].face.box))
    groups = []
    for number, person in enumerate(in_order):
        best = max(person, key=lambda s: (s.face.quality, s.face.score, -s.time_ms))
        blob = blobs.add(best.crop, settings.jpeg_quality)
        seen = tuple(_sighting(s, clip, settings, blob if s is best else None) for s in person)
        groups.append(Group(kind=IdentityKind.FACE, number=number, sightings=seen))
    return tuple(groups)


def _match_boxes(
    before: Iterable[int], now: Iterable[int], detected: Sequence[DetectedFace]
) -> list[tuple[int, int]]:
    """Pair faces in the same place, best overlap first, each face in at most one pair."""
    now = list(now)
    overlaps = [
        (box_iou(detected[a].face.box, detected[b].face.box), a, b) for a in before for b in now
    ]
    pairs: dict[int, int] = {}
    for iou, a, b in sorted(overlaps, key=lambda found: (-found[0], found[1], found[2])):
        free = a not in pairs and b not in pairs.values()
        if iou >= _MIN_TRACK_IOU and detected[a].shot == detected[b].shot and free:
            pairs[a] = b
    return list(pairs.items())


def box_iou(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> float:
    """Return the intersection over union, in [0, 1], of two boxes (x0, y0, x1, y1)."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    shared = max(0, width) * max(0, height)
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared
    return shared / union if union else 0.0


def _sighting(
    face: DetectedFace, clip: Clip, settings: WatchSettings, blob: str | None
) -> Sighting:
    end = min(face.time_ms + settings.face_interval_ms, clip.span.end_ms)
    x0, y0, x1, y1 = face.face.box
    return Sighting(
        span=TimeSpan.of(face.time_ms, max(end, face.time_ms)),
        box=Box(x0=x0, y0=y0, x1=x1, y1=y1),
        score=face.face.score,
        quality=face.face.quality,
        vector=tuple(float(value) for value in face.face.vector),
        blob=blob,
    )


WINDOW_MS = 1_500
HOP_MS = 750
_MIN_SPEECH_MS = 400
_MERGE_COSINE = 0.3
"""Mean cosine at which clusters of windows merge (cosine distance 0.7). Windows are short, and so
less alike than the turns for which the encoder states its own threshold."""
_MIN_WINDOWS = 3
"""Clusters of fewer windows are absorbed, where there is a larger one."""
_PAUSE_MS = 500
_MAX_EMBEDDED_MS = 10_000
"""What is embedded of a turn at most: more says no more about the voice."""


@dataclass(frozen=True)
class SpeakerTurn:
    """A turn of one voice, in milliseconds from the clip's start."""

    start_ms: int
    end_ms: int
    voice: int

    @property
    def length_ms(self) -> int:
        return self.end_ms - self.start_ms


def find_turns(
    samples: Samples, spans: Sequence[tuple[int, int]], encoder: SpeakerEncoder, hz: int
) -> list[SpeakerTurn]:
    """Return turns in order; voices are numbered from 0 in order of first appearance.

    Args:
        samples: mono audio of the clip, values in [-1, 1].
        spans: where somebody speaks, in milliseconds, in order, disjoint.
    """
    windows = [window for start, end in spans for window in cut_windows(start, end)]
    if not windows:
        return []
    vectors = np.stack(map_in_threads(lambda w: encoder.embed(_slice(samples, *w, hz)), windows))
    voices = absorb_small(vectors, cluster(vectors, _MERGE_COSINE), _MIN_WINDOWS)
    # Join windows to turns: overlapping windows meet half-way, short pauses are bridged.
    turns: list[SpeakerTurn] = []
    for start, end in spans:
        in_span = [(w, v) for w, v in zip(windows, voices, strict=True) if start <= w[0] < end]
        turns += _turns_of_span(start, end, in_span)
    return bridge_pauses(turns)


def cut_windows(start_ms: int, end_ms: int) -> list[tuple[int, int]]:
    """Return windows of 1.5 s every 0.75 s that cover a span; one if it is shorter."""
    if end_ms - start_ms < _MIN_SPEECH_MS:
        return []
    if end_ms - start_ms <= WINDOW_MS:
        return [(start_ms, end_ms)]
    last = end_ms - WINDOW_MS
    return [(s, s + WINDOW_MS) for s in (*range(start_ms, last, HOP_MS), last)]


def absorb_small(vectors: NDArray[np.float32], labels: Sequence[int], min_size: int) -> list[int]:
    """Assign clusters smaller than ``min_size`` to the most similar larger cluster."""
    sizes = Counter(labels)
    large = sorted(label for label, size in sizes.items() if size >= min_size)
    if not large:
        large = [min(label for label, size in sizes.items() if size == max(sizes.values()))]
    rows = np.array(labels)
    means = np.stack([vectors[rows == label].mean(axis=0) for label in large])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    nearest = np.argmax(vectors @ means.T, axis=1)
    absorbed = [
        label if label in large else large[near]
        for label, near in zip(labels, nearest, strict=True)
    ]
    return renumber(absorbed)


def _slice(samples: Samples, start_ms: int, end_ms: int, hz: int) -> Samples:
    return samples[start_ms * hz // 1000 : end_ms * hz // 1000]


def _turns_of_span(
    start: int, end: int, windows: Sequence[tuple[tuple[int, int], int]]
) -> list[SpeakerTurn]:
    if not windows:
        return []
    edges = [start]
    edges += [(a[1] + b[0]) // 2 for (a, _), (b, _) in pairwise(windows)]
    edges.append(end)
    pieces = [
        SpeakerTurn(low, high, voice)
        for (low, high), (_, voice) in zip(pairwise(edges), windows, strict=True)
    ]
    runs = (list(run) for _, run in groupby(pieces, key=lambda piece: piece.voice))
    return [SpeakerTurn(run[0].start_ms, run[-1].end_ms, run[0].voice) for run in runs]


def bridge_pauses(turns: Sequence[SpeakerTurn]) -> list[SpeakerTurn]:
    """Join turns of one voice that are less than half a second apart."""
    bridged: list[SpeakerTurn] = []
    for turn in turns:
        last = bridged[-1] if bridged else None
        if last and last.voice == turn.voice and turn.start_ms - last.end_ms < _PAUSE_MS:
            bridged[-1] = SpeakerTurn(last.start_ms, turn.end_ms, turn.voice)
        else:
            bridged.append(turn)
    return bridged


def group_voices(
    turns: Sequence[SpeakerTurn],
    samples: Samples,
    clip: Clip,
    encoder: SpeakerEncoder,
    settings: WatchSettings,
) -> tuple[Group, ...]:
    """Return a group for each voice with a long enough turn; its sightings are those turns."""
    known = [turn for turn in turns if turn.length_ms >= settings.voice_turn_ms]
    vectors = map_in_threads(
        lambda turn: encoder.embed(
            _slice(
                samples,
                turn.start_ms,
                min(turn.end_ms, turn.start_ms + _MAX_EMBEDDED_MS),
                settings.audio_hz,
            )
        ),
        known,
    )
    of_voice: dict[int, list[tuple[SpeakerTurn, Vector]]] = {}
    for turn, vector in zip(known, vectors, strict=True):
        of_voice.setdefault(turn.voice, []).append((turn, vector))
    return tuple(_group(voice, of_voice[voice], clip) for voice in sorted(of_voice))


def _group(voice: int, turns: Sequence[tuple[SpeakerTurn, Vector]], clip: Clip) -> Group:
    """Score each turn by its cosine to the voice's mean; its quality is its length in seconds."""
    mean = np.sum([vector for _, vector in turns], axis=0)
    mean = mean / max(float(np.linalg.norm(mean)), 1e-9)
    return Group(
        kind=IdentityKind.VOICE,
        number=voice,
        sightings=tuple(
            Sighting(
                span=clip_span(turn.start_ms, turn.end_ms, clip),
                score=min(1.0, max(0.0, float(vector @ mean))),
                quality=turn.length_ms / 1000,
                vector=tuple(float(value) for value in vector),
            )
            for turn, vector in turns
        ),
    )


def clip_span(start_ms: int, end_ms: int, clip: Clip) -> TimeSpan:
    """Return a span of the clip's samples as video time, clipped to the clip."""
    zero, last = clip.span.start_ms, clip.span.end_ms
    start = min(zero + max(0, start_ms), last)
    return TimeSpan.of(start, min(max(start, zero + end_ms), last))
