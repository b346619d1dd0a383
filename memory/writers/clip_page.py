"""Builds a clip writer's prompt: images and lines by part, and the page that lists them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from types import MappingProxyType
from typing import Any, TypeVar

import cv2
import numpy as np

from domain.media import Percept, Sighting, Utterance
from domain.sentences import describe_by_time
from domain.settings import IMAGE_TOKENS, VIDEO_SECOND_TOKENS
from domain.time import TimeSpan, merge_close_spans
from memory.writers.local_clip import speaker_of
from memory.writers.port import ClipContext
from models.messages import join_lines, prompts_beside, sanitise, sanitise_generated, text_tokens
from people.characters import ClipPeople
from perception.clip_view import CHANGED, picture_change

prompt = prompts_beside(__file__)

# Reduces the prompt of a clip to a budget of tokens; pure.
#
# Parts are subsampled evenly in time, in the order of ``REDUCTION_ORDER``: each down to
# ``MIN_ITEMS`` first, then, in the same order, down to nothing. Faces are nearly last: nothing else
# tells which tag is whom. Quotations are stored in any case, whether or not they are in the prompt.

T = TypeVar("T")

REDUCTION_ORDER = (
    "known facts",
    "objects",
    "frames",
    "keyframes",
    "video",
    "screen texts",
    "subtitles",
    "captions",
    "faces",
    "lines of speech",
)
"""Names of the parts, in the order in which they are reduced."""
MIN_ITEMS = MappingProxyType({"faces": 2, "frames": 4, "keyframes": 1, "video": 1})
"""Fewest items of a part after the first pass; ``MIN_LINES`` for other parts."""
MIN_LINES = 8
CROP_TOKENS = 300
"""Tokens of a small image, by the most expensive of the usual models."""


@dataclass(frozen=True)
class PromptItem:
    """One line of a part, and its file where it is an image or a video.

    ``time_ms``: a keyframe's or frame's; ``video_s``: how long a video is.
    """

    text: str
    image: bytes | None = field(default=None, repr=False)
    crop: bool = False
    time_ms: int | None = None
    video_s: float | None = None

    @property
    def tokens(self) -> int:
        """Estimate the tokens of the item, rather too many: an image is listed and labelled."""
        listed = text_tokens(self.text) + 2
        return listed if self.image is None else 2 * listed + self.image_tokens

    @property
    def image_tokens(self) -> int:
        """Estimate the tokens of an image or a video itself."""
        if self.video_s is not None:
            return round(self.video_s * VIDEO_SECOND_TOKENS)
        return CROP_TOKENS if self.crop else IMAGE_TOKENS


PromptParts = Mapping[str, Sequence[PromptItem]]
"""Items in order of time, by the names of ``REDUCTION_ORDER``."""


def count_tokens(parts: PromptParts) -> int:
    return sum(item.tokens for items in parts.values() for item in items)


def fit_parts(parts: PromptParts, max_tokens: int) -> dict[str, tuple[PromptItem, ...]]:
    """Reduce the parts to at most ``max_tokens`` tokens."""
    reduced = {name: tuple(items) for name, items in parts.items()}
    for may_drop_all, name in product((False, True), REDUCTION_ORDER):
        excess = count_tokens(reduced) - max_tokens
        if excess <= 0:
            break
        if name in reduced:
            minimum = 0 if may_drop_all else MIN_ITEMS.get(name, MIN_LINES)
            reduced[name] = _reduce_by(reduced[name], excess, minimum)
    for name in [name for name in reversed(REDUCTION_ORDER) if name in reduced]:
        all_items = tuple(parts[name])
        excess = count_tokens(reduced | {name: all_items}) - max_tokens
        reduced = reduced | {name: _reduce_by(all_items, excess, len(reduced[name]))}
        if excess > 0:
            break
    return reduced


def _reduce_by(items: tuple[PromptItem, ...], excess: int, minimum: int) -> tuple[PromptItem, ...]:
    """Subsample items to save ``excess`` tokens, but keep at least ``minimum`` items."""
    if excess <= 0 or not items:
        return items
    max_tokens = count_tokens({"": items}) - excess
    reduced = subsample(items, max(minimum, len(items) * max_tokens // (max_tokens + excess)))
    while count_tokens({"": reduced}) > max_tokens and len(reduced) > minimum:
        reduced = subsample(items, len(reduced) - 1)
    return reduced


def subsample(items: Sequence[T], max_items: int) -> tuple[T, ...]:
    """Keep at most ``max_items`` items, evenly spaced."""
    count = len(items)
    if count <= max_items:
        return tuple(items)
    return tuple(items[number * count // max_items] for number in range(max_items))


def describe_omitted(parts: PromptParts, reduced: PromptParts) -> tuple[str, ...]:
    """Describe what is omitted, part by part: ``6 of 8 faces``."""
    counts = {name: len(parts.get(name, ())) for name in REDUCTION_ORDER}
    omitted = {name: count - len(reduced.get(name, ())) for name, count in counts.items()}
    return tuple(
        f"{omitted[name]} of {counts[name]} {name}" for name in REDUCTION_ORDER if omitted[name]
    )


MAX_CROPS = 8
"""Most faces shown to the model: those that are seen longest."""
GAP_MS = 2_000
"""A face that is not seen for longer comes back: it is told as seen twice."""
NEAR_MS = 4_000
"""A frame so close to a keyframe is left out if both look alike."""
BEFORE_LOOK_MS = 500
"""An image so long before faces were looked for still shows them: there is a look each second."""
SPANS = 4
"""Times of a face that are told, at most: the first ones."""


def prompt_parts(
    percept: Percept, people: ClipPeople, context: ClipContext, *, images: bool
) -> PromptParts:
    """All that may be shown of a clip, in order of time; no images where the model sees none."""
    screen = (
        f"{line.time_ms / 1000:.1f} s: {sanitise(line.text)}" for line in percept.screen_texts
    )
    objects = (f"{ms / 1000:.1f} s: {counts}" for ms, counts in describe_by_time(percept.objects))
    facts = (
        f"[m{fact.id}] {sanitise_generated(people.replace_tags(fact.text))}"
        for fact in context.facts
    )
    keyframes = tuple(
        PromptItem(
            f"keyframe at {frame.time_ms / 1000:.1f} s",
            context.blobs[frame.blob],
            time_ms=frame.time_ms,
        )
        for frame in percept.keyframes
        if images and frame.blob in context.blobs
    )
    # Subtitles and chapters of the source may differ from recognised speech.
    chapters = (
        f"{chapter.span.start_ms / 1000:.1f} s a chapter begins: {sanitise(chapter.text)}"
        for chapter in percept.chapters
    )
    sounds = (f"{_seconds(sound.span)} (not speech: {sound.kind})" for sound in percept.sounds)
    return {
        # Keyframes first: a description names one by the number of its image.
        "keyframes": keyframes,
        "frames": tuple(_frame_items(context, keyframes)) if images else (),
        "video": tuple(_video_items(percept, context)) if images else (),
        "faces": tuple(_face_items(percept, people, context))[:MAX_CROPS] if images else (),
        "lines of speech": _to_items(chain(_transcript_lines(percept.utterances, people), sounds)),
        "screen texts": _to_items(screen),
        "objects": _to_items(objects),
        "captions": _to_items(_transcript_lines(percept.captions, people)),
        "subtitles": _to_items(chain(chapters, _transcript_lines(percept.subtitles, people))),
        "known facts": _to_items(facts),
    }


def _to_items(lines: Iterable[str]) -> tuple[PromptItem, ...]:
    return tuple(PromptItem(line) for line in lines)


def _frame_items(context: ClipContext, keyframes: Sequence[PromptItem]) -> Iterator[PromptItem]:
    """Yield the frames that show something else than a keyframe of about that time."""
    read = [(one.time_ms or 0, _picture(one.image)) for one in keyframes if one.image is not None]
    for frame in context.view.frames:
        near = [one for ms, one in read if one is not None and abs(ms - frame.time_ms) < NEAR_MS]
        shown = _picture(frame.jpeg) if near else None
        if shown is None or all(picture_change(one, shown) >= CHANGED for one in near):
            caption = f"frame at {frame.time_ms / 1000:.1f} s"
            yield PromptItem(caption, frame.jpeg, time_ms=frame.time_ms)


def _picture(jpeg: bytes) -> Any:
    """Return the pixels of a JPEG, a quarter of its size; None if it cannot be read."""
    return cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_REDUCED_COLOR_4)


def _video_items(percept: Percept, context: ClipContext) -> Iterator[PromptItem]:
    if context.view.video is not None:
        span = percept.clip.span
        start, end = span.start_ms / 1000, span.end_ms / 1000
        text = f"the clip as a video with sound, from {start:.1f} to {end:.1f} s"
        yield PromptItem(text, context.view.video, video_s=end - start)


def _face_items(percept: Percept, people: ClipPeople, context: ClipContext) -> Iterator[PromptItem]:
    """Yield the best crop of each face, those first that are seen longest."""
    for group in sorted(percept.faces, key=lambda one: -len(one.sightings)):
        blob = max(group.sightings, key=lambda sighting: sighting.quality).blob
        if blob is not None and blob in context.blobs:
            yield PromptItem(people.faces[group.number].tag, context.blobs[blob], crop=True)


def clip_prompt(
    percept: Percept, people: ClipPeople, context: ClipContext, parts: PromptParts, language: str
) -> str:
    """What is asked about a clip, with these parts of it; images in the order of the parts."""
    lists = {name: join_lines(item.text for item in items) for name, items in parts.items()}
    images = [item for items in parts.values() for item in items if item.image is not None]
    empty = join_lines(())
    return prompt(
        "clip",
        language=language,
        title=sanitise(context.title),
        clip=percept.clip.index,
        start=f"{percept.clip.span.start_ms / 1000:.1f}",
        end=f"{percept.clip.span.end_ms / 1000:.1f}",
        images=join_lines(f"{n}. {item.text}" for n, item in enumerate(images, 1)),
        before=join_lines(
            f"{_seconds(line.span)}: {sanitise_generated(people.replace_tags(line.text))}"
            for line in context.before
        ),
        people=join_lines(_people_lines(people, percept, images)),
        transcript=lists.get("lines of speech", empty),
        screen=lists.get("screen texts", empty),
        objects=lists.get("objects", empty),
        captions=lists.get("captions", empty),
        subtitles=lists.get("subtitles", empty),
        facts=lists.get("known facts", empty),
    )


def _people_lines(
    people: ClipPeople, percept: Percept, images: Sequence[PromptItem]
) -> Iterable[str]:
    """Yield who is there, and of faces when they are seen and where on which image."""
    faces = dict[str, list[Sighting]]()
    for group in percept.faces:  # Several may be one person.
        faces.setdefault(people.faces[group.number].tag, []).extend(group.sightings)
    looks = {one.span.start_ms: one.span.end_ms for some in faces.values() for one in some}
    width = max((frame.width for frame in percept.keyframes), default=0)
    times = {n: one.time_ms for n, one in enumerate(images, 1) if one.time_ms is not None}
    # Right after a cut, the face of before was seen at the last look: the closest look counts.
    closest = {n: min(looks, key=lambda look: abs(look - ms)) for n, ms in times.items() if looks}
    closest = {n: t for n, t in closest.items() if t - BEFORE_LOOK_MS <= times[n] <= looks[t]}
    for tag in people.identities():
        person = people.character(tag)
        character = f" is {person.tag}" if person else ""
        named = f", known as {sanitise(person.name)}" if person and person.name else ""
        seen = f": {_whereabouts(faces[tag], closest, width)}" if tag in faces else ""
        yield f"{tag}{character}{named}{seen}"


def _whereabouts(face: Sequence[Sighting], looks: Mapping[int, int], width: int) -> str:
    """Say when a face is seen, and where: ``seen 3.0-9.2 s; image 2 left, image 4 middle``.

    ``looks``: for the number of an image the time in ms at which faces were looked for.
    """
    spans = merge_close_spans((one.span for one in face), GAP_MS)
    places = list[str]()
    for number, look in looks.items():
        box = next((one.box for one in face if one.span.start_ms == look), None)
        if box is not None and width:
            third = min(2, int(3 * (box.x0 + box.x1) / 2 / width))
            places.append(f"image {number} {('left', 'middle', 'right')[third]}")
    seen = "seen " + ", ".join(map(_seconds, spans[:SPANS]))
    return "; ".join([seen, *([", ".join(places)] if places else [])])


def _seconds(span: TimeSpan) -> str:
    return f"{span.start_ms / 1000:.1f}-{span.end_ms / 1000:.1f} s"


def _transcript_lines(utterances: Iterable[Utterance], people: ClipPeople) -> Iterable[str]:
    for utterance in utterances:
        voice = speaker_of(utterance, people)
        named = sanitise(utterance.speaker) if utterance.speaker else None
        speaker = voice.tag if voice else named
        said = sanitise(utterance.text)
        yield f"{_seconds(utterance.span)} {speaker + ': ' if speaker else ''}{said}"
