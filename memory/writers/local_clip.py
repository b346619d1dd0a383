"""The clip writer without a language model: quotations, and lines on people, objects and sounds.

Nothing is inferred. Every line is a quotation or a plain statement of what was recognised, with
its source; the only semantic lines are names that the clip itself says or shows. A keyframe is
described as a model that saw it wrote, else by what was recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from domain.media import Group, IdentityKind, Keyframe, Percept, Utterance
from domain.memories import (
    SEPARATOR,
    ClipMemories,
    KeyframeDescription,
    MemoryDraft,
    MemoryKind,
    MemorySource,
)
from domain.people import TAG, Identity, IdentityStatement, escape_tags
from domain.sentences import count_objects, describe_counts, describe_picture, split_utterance
from domain.settings import MemorySettings
from domain.time import TimeSpan
from memory.clip_lines import continue_screen_text, continue_speech, sound_lines
from memory.writers.port import ClipContext
from people.characters import ClipPeople, speaking_alone, visible_spans
from people.names import find_name_plates, introduced_name
from perception.images import LEVELS, colour_shares

DEFAULTS = MemorySettings()

TEXT_DURATION_MS = 1_000
"""How long a text or object on a keyframe is assumed to be visible."""

MIN_TEXT_SCORE = 0.7
"""Least recognition score, in [0, 1], of stored screen text."""


class LocalClipWriter:
    """Composes the memories of a clip from its percept; see the module.

    Args:
        lines: Most lines of a clip. Speech, screen text and texts of the source are quoted in full
            even beyond it; sounds, people and objects in view get lines only up to it.
        is_person: Says whether a text on screen has the form of a person's name.
    """

    source = ""
    wants_context = False

    def __init__(
        self, lines: int = DEFAULTS.lines, is_person: Callable[[str], bool] = bool
    ) -> None:
        self._lines, self._is_person = lines, is_person

    def write(self, percept: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
        """Return the clip's lines in order of time; of ``context`` it uses the clip before."""
        named = list[tuple[MemoryDraft, tuple[str, str]]]()
        for plate in find_name_plates(percept, self._is_person):
            tag = people.faces[plate.face].tag
            text = (
                f"{tag} is named {escape_tags(f'{plate.name}, {plate.title}')} (shown on screen)."
            )
            end = max(
                plate.time_ms, min(plate.time_ms + TEXT_DURATION_MS, percept.clip.span.end_ms)
            )
            named.append(
                (
                    _character_line(text, TimeSpan.of(plate.time_ms, end), MemorySource.READ, tag),
                    (tag, plate.name),
                )
            )
        for utterance in percept.utterances:
            voice, name = speaker_of(utterance, people), introduced_name(utterance)
            if voice and name and not utterance.speaker:
                quote = escape_tags(utterance.text.strip())
                text = f'{voice.tag} is named {name} (said: "{quote}").'
                named.append(
                    (
                        _character_line(text, utterance.span, MemorySource.SAID, voice.tag),
                        (voice.tag, name),
                    )
                )
        speech = continue_speech([*_speech_lines(percept.utterances, people)], context.before)
        shown = continue_screen_text([*_screen_text_lines(percept)], context.before)
        spoken = [*speech, *_source_text_lines(percept)]
        recognised = [*shown, *(line for line, _ in named)]
        quoted = [*spoken, *recognised]
        visible_lines = [*_presence_lines(percept, people), *_object_lines(percept)]
        secondary = [*sound_lines(percept), *visible_lines]
        if not recognised and not secondary:
            secondary = [*colour_lines(percept)]
        drafts = [*quoted, *secondary[: max(0, self._lines - len(quoted))]]
        return ClipMemories(
            drafts=tuple(
                sorted(drafts, key=lambda draft: (draft.span.start_ms, draft.span.end_ms))
            ),
            statements=tuple(
                IdentityStatement(
                    face=people.faces[face].number,
                    voice=people.voices[voice].number,
                    clip=percept.clip.index,
                    support=seconds,
                    reason=f"the only face in view during {seconds:.1f} s of this voice",
                )
                for face, voice, seconds in speaking_alone(percept)
            ),
            names=tuple(name for _, name in named),
            descriptions=recognised_descriptions(percept, people),
        )


def speaker_of(utterance: Utterance, people: ClipPeople) -> Identity | None:
    if utterance.speaker in people.speakers:
        return people.speakers[utterance.speaker or ""]
    return people.voices.get(utterance.voice) if utterance.voice is not None else None


def _speech_lines(utterances: Iterable[Utterance], people: ClipPeople) -> Iterable[MemoryDraft]:
    for utterance in utterances:
        voice = speaker_of(utterance, people)
        tag = (voice.tag,) if voice else ()
        for text, span in split_utterance(utterance):
            yield MemoryDraft(
                kind=MemoryKind.EPISODIC,
                text=escape_tags(text),
                span=span,
                source=MemorySource.SAID,
                tags=tag,
                speaker=utterance.speaker or next(iter(tag), None),
            )


def _source_text_lines(percept: Percept) -> Iterable[MemoryDraft]:
    """Yield the captions, subtitles and chapters that came with the source, unchanged."""
    for source, lines in (
        (MemorySource.CAPTION, percept.captions),
        (MemorySource.SUBTITLE, percept.subtitles),
        (MemorySource.CHAPTER, percept.chapters),
    ):
        for utterance in lines:
            for text, span in split_utterance(utterance):
                line = _episodic_line(escape_tags(text), span, source)
                named = source == MemorySource.SUBTITLE and utterance.speaker
                yield line.model_copy(update={"speaker": escape_tags(named)}) if named else line


def _episodic_line(
    text: str, span: TimeSpan, source: MemorySource, tags: tuple[str, ...] = ()
) -> MemoryDraft:
    return MemoryDraft(kind=MemoryKind.EPISODIC, text=text, span=span, source=source, tags=tags)


def _screen_text_lines(percept: Percept) -> Iterable[MemoryDraft]:
    """One line a keyframe with text; a text that stays on screen is one line."""
    texts: dict[str, tuple[str, TimeSpan]] = {}
    for time_ms in sorted({line.time_ms for line in percept.screen_texts}):
        shown = [line for line in percept.screen_texts if line.time_ms == time_ms]
        text = SEPARATOR.join(line.text.strip() for line in shown if line.score >= MIN_TEXT_SCORE)
        end = max(time_ms, min(time_ms + TEXT_DURATION_MS, percept.clip.span.end_ms))
        span = TimeSpan.of(time_ms, end)
        key = text.casefold()
        texts[key] = (text, texts[key][1].union(span)) if key in texts else (text, span)
    for text, span in texts.values():
        if text:
            yield _episodic_line(escape_tags(text), span, MemorySource.READ)


def _presence_lines(percept: Percept, people: ClipPeople) -> Iterable[MemoryDraft]:
    """One line for every set of people that is in view at one time, and one a person."""
    merged: dict[int, Group] = {}
    for group in percept.faces:
        key = people.faces[group.number].number
        earlier = merged.get(key)
        sightings = (*(earlier.sightings if earlier else ()), *group.sightings)
        merged[key] = group.model_copy(update={"sightings": sightings})
        if earlier:
            merged[key] = merged[key].model_copy(update={"number": earlier.number})
    groups = sorted((people.faces[group.number].number, group) for group in merged.values())
    times = {f"<{IdentityKind.FACE}_{number}>": visible_spans(group) for number, group in groups}
    # Those who are seen together first: of a crowd, not each gets a line.
    for tags, span in sorted(_co_visible(times).items(), key=lambda one: -len(one[0])):
        text = f"{', '.join(tags[:-1])} and {tags[-1]} are on screen together."
        yield _episodic_line(text, span, MemorySource.SEEN, tags)
    for tag, spans in times.items():
        yield _episodic_line(
            f"{tag} is on screen.", _covering_span(spans), MemorySource.SEEN, (tag,)
        )


def _object_lines(percept: Percept) -> Iterable[MemoryDraft]:
    """One line a clip: how many of each kind of thing are in view at one time at most."""
    if percept.objects:
        times = [detection.time_ms for detection in percept.objects]
        end = max(max(times), min(max(times) + TEXT_DURATION_MS, percept.clip.span.end_ms))
        text = f"Seen: {describe_counts(count_objects(percept.objects))}."
        yield _episodic_line(text, TimeSpan.of(min(times), end), MemorySource.OBJECTS)


def _co_visible(times: Mapping[str, Sequence[TimeSpan]]) -> dict[tuple[str, ...], TimeSpan]:
    """Return the largest sets of two or more tags in view at one time, with when."""
    starts = sorted({span.start_ms for spans in times.values() for span in spans})
    sets: dict[tuple[str, ...], list[TimeSpan]] = {}
    for start in starts:
        in_view = {
            tag: span
            for tag, spans in times.items()
            if (
                span := next(
                    (s for s in spans if s.start_ms == start or s.start_ms <= start < s.end_ms),
                    None,
                )
            )
        }
        if len(in_view) > 1:
            end = min(span.end_ms for span in in_view.values())
            sets.setdefault(tuple(in_view), []).append(TimeSpan.of(start, end))
    return {
        tags: _covering_span(spans)
        for tags, spans in sets.items()
        if not any(set(tags) < set(other) for other in sets)
    }


def _covering_span(spans: Sequence[TimeSpan]) -> TimeSpan:
    """From the first to the last appearance: one line a clip is enough."""
    return TimeSpan.of(spans[0].start_ms, spans[-1].end_ms)


def _character_line(text: str, span: TimeSpan, source: MemorySource, tag: str) -> MemoryDraft:
    return MemoryDraft(kind=MemoryKind.CHARACTER, text=text, span=span, source=source, tags=(tag,))


NEAR_MS = 1_000
"""A face that is seen within this time of a keyframe is said to be in view on it."""


def recognised_descriptions(
    percept: Percept, people: ClipPeople
) -> tuple[KeyframeDescription, ...]:
    """Describe keyframes by the people, objects and text that were recognised on them.

    A keyframe on which nothing was recognised has no description.
    """
    return tuple(
        KeyframeDescription(time_ms=frame.time_ms, text=text)
        for frame in percept.keyframes
        if (text := _recognised(frame, percept, people))
    )


def _recognised(frame: Keyframe, percept: Percept, people: ClipPeople) -> str:
    return describe_picture(
        dict.fromkeys(
            people.faces[group.number].tag
            for group in percept.faces
            if any(
                one.span.start_ms - NEAR_MS <= frame.time_ms <= one.span.end_ms + NEAR_MS
                for one in group.sightings
            )
        ),
        [thing for thing in percept.objects if thing.time_ms == frame.time_ms],
        [escape_tags(one.text) for one in percept.screen_texts if one.time_ms == frame.time_ms],
    )


def checked_descriptions(
    texts: Sequence[tuple[int, str]], shown: Sequence[int], people: ClipPeople
) -> tuple[tuple[KeyframeDescription, ...], tuple[str, ...]]:
    """Return what of a model's words on the keyframes it was shown can be stored, and what cannot.

    Args:
        texts: The number of an image, from 1, and what was written of it.
        shown: The times in ms of the keyframes that were shown: image 1, image 2 and so on.
        people: Whose tags may be used.

    Returns:
        One description of each keyframe at most, the first where there are several. ``dropped``
        says what is missing or cannot be stored.
    """
    known = people.tags()
    usable: dict[int, KeyframeDescription] = {}
    dropped: list[str] = []
    for number, text in texts:
        if not 1 <= number <= len(shown):
            dropped.append("the description of an image that is no keyframe of the clip")
            continue
        time_ms, plain = shown[number - 1], " ".join(text.split())
        if any(found[0] not in known for found in TAG.finditer(plain)):
            dropped.append(f"{_of(time_ms)}: it names somebody who is not in the clip")
        elif number not in usable and plain:
            usable[number] = KeyframeDescription(time_ms=time_ms, text=plain)
    written = {number for number, text in texts if text.strip()}
    dropped += [
        f"{_of(time_ms)}: the model wrote none that can be read"
        for number, time_ms in enumerate(shown, 1)
        if number not in written
    ]
    ordered = tuple(usable[number] for number in sorted(usable))
    return ordered, tuple(dict.fromkeys(dropped))


def fill_descriptions(
    first: Sequence[KeyframeDescription], others: Sequence[KeyframeDescription]
) -> tuple[KeyframeDescription, ...]:
    """Return ``first``, with those of ``others`` whose keyframes have none; in order of time."""
    by_time = {one.time_ms: one for one in (*others, *first)}
    return tuple(by_time[time_ms] for time_ms in sorted(by_time))


def _of(time_ms: int) -> str:
    return f"the description of the keyframe at {time_ms / 1000:.1f} s"


# One line on a clip's colours, where nothing else was recognised besides speech.

SHOWN_MS = 1_000
"""How long a keyframe is assumed to be in view."""
MOSTLY = 0.2
"""The least share of a picture's colour that is told."""
TOLD = 2
"""Colours at most."""
DARK, BRIGHT = 0.35, 0.65
"""Mean value, in [0, 1], up to which a picture is dark and from which it is bright."""
_GREYS = ("black", "grey", "white")
_HUES = (
    *("red", "orange", "yellow", "green", "green", "green"),
    *("turquoise", "blue", "blue", "violet", "pink", "pink"),
)
"""Names of the hues, which are 30 degrees apart."""


def colour_lines(percept: Percept) -> Iterator[MemoryDraft]:
    """Yield how light the keyframes of a clip are together, and their main colours."""
    vectors = [one.likeness for one in percept.keyframes if one.likeness is not None]
    if not vectors:
        return
    times = [one.time_ms for one in percept.keyframes]
    end = max(times[-1], min(times[-1] + SHOWN_MS, percept.clip.span.end_ms))
    shares = np.mean([colour_shares(np.asarray(vector)) for vector in vectors], axis=0)
    yield MemoryDraft(
        kind=MemoryKind.EPISODIC,
        text=f"Picture: {describe_colours(shares)}.",
        span=TimeSpan.of(times[0], end),
        source=MemorySource.COLOURS,
    )


def describe_colours(shares: NDArray[np.float64]) -> str:
    """Describe colours by their shares, (hues, saturations, values): ``dark, mostly brown``."""
    named: dict[str, float] = {}
    for (hue, saturation, value), share in np.ndenumerate(shares):
        # Without saturation a colour is grey, and brown is a dull orange.
        if saturation == 0:
            name = _GREYS[value]
        else:
            dull = saturation < LEVELS - 1 or value < LEVELS - 1
            plain = "brown" if _HUES[hue] == "orange" and dull else _HUES[hue]
            name = f"dark {plain}" if value == 0 else plain
        named[name] = named.get(name, 0.0) + float(share)
    most = sorted((-share, name) for name, share in named.items() if share >= MOSTLY)[:TOLD]
    colours = " and ".join(name for _, name in most)
    centres = (np.arange(LEVELS) + 0.5) / LEVELS
    value = float(shares.sum(axis=(0, 1)) @ centres)
    light = "dark" if value <= DARK else "bright" if value >= BRIGHT else ""
    parts = [light, f"mostly {colours}" if colours else "of many colours"]
    return ", ".join(part for part in parts if part)
