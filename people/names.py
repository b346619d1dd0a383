"""Finds names that a clip states, in spoken introductions and on name plates; pure.

Precision goes before recall: a sentence must plainly introduce its speaker, and a name plate
counts only in the lower half of the picture, with an occupation beside it, while exactly one face
is in view. Whatever else stands there, as the name of a program, has no form of a person's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from domain.media import Percept, ScreenText, Utterance
from domain.memories import (
    Line,
    Memory,
    MemoryDraft,
    MemoryKind,
    MemorySource,
    Segment,
    with_attribution,
)
from domain.people import TAG
from domain.sentences import split_sentences
from domain.word_lists import load_words
from people.characters import ClipPeople, visible_spans

_WORD = r"[A-Z][a-zà-öø-ÿ'’-]+(?:[A-Z][a-zà-öø-ÿ]+)?"
_NAME = rf"((?:Dr\. |Dr )?{_WORD}(?: [A-Z]\.)?(?: {_WORD}){{0,2}})"
_AFTER = r"(?=\s*(?:[.,;!?]|$|and\b|from\b|here\b|speaking\b|with\b|the\b|your\b|I\b))"
_GREETING = (
    r"(?:(?:[Ww]ell|[Hh]i|[Hh]ello|[Hh]ey|[Ww]elcome|[Gg]ood \w+|[Yy]es|[Ss]o)\b[^.!?]{0,30}?)?"
)
_INTRODUCTIONS = (
    re.compile(rf"\b[Mm]y name(?:['’]s| is) {_NAME}{_AFTER}"),
    re.compile(rf"^{_GREETING},? ?(?:I['’]m|I am) {_NAME}{_AFTER}"),
    re.compile(rf"^{_GREETING},? ?[Tt]his is {_NAME} (?:speaking|here|reporting)\b"),
)
_PLATE_WORD = r"(?:[A-ZÀ-Ý][A-Za-zÀ-ÿ'’-]+|[A-Z]\.)"
_PLATE = re.compile(rf"{_PLATE_WORD}(?: {_PLATE_WORD}){{1,2}}")
_FIRST_NAME = re.compile(r"[A-ZÀ-Ý][A-Za-zÀ-ÿ'’-]{2,}")
_OCCUPATION = re.compile(r"(?:[A-Z][A-Za-z&'’-]*,? ){0,3}([A-Z][A-Za-z]+)")
_SEPARATOR = re.compile(r"(?<!\s)(?:\s*+[,|–—]|\s++[|–—-])\s+")

FACE_TOLERANCE_MS = 200
"""A face seen within this time of a keyframe counts as in view on it."""

MIN_SCORE = 0.8
"""Least recognition score, in [0, 1], of the lines of a name plate."""


@dataclass(frozen=True)
class NamePlate:
    """A name on screen with its occupation line, and the face group it belongs to."""

    face: int
    name: str
    title: str
    time_ms: int


def introduced_name(utterance: Utterance) -> str | None:
    """Return the name by which a speaker introduces themself, or None."""
    for sentence in split_sentences(utterance.text):
        for pattern in _INTRODUCTIONS:
            match = pattern.search(sentence)
            if match and _is_name(match[1]):
                return match[1]
    return None


def _is_name(text: str) -> bool:
    parts = text.lower().split()
    is_nationality = len(parts) == 1 and re.search(r"(?:ese|ish|ican|ian)$", parts[0])
    return not is_nationality and not load_words("not_names").intersection(parts)


def find_name_plates(percept: Percept, is_person: Callable[[str], bool]) -> list[NamePlate]:
    """Find the name plates of a clip; the first reading of each face and name.

    Args:
        is_person: says whether a text has the form of a person's name.
    """
    plates: dict[tuple[int, str], NamePlate] = {}
    for frame in percept.keyframes:
        visible = [
            group.number
            for group in percept.faces
            if any(
                s.start_ms - FACE_TOLERANCE_MS <= frame.time_ms <= s.end_ms + FACE_TOLERANCE_MS
                for s in visible_spans(group)
            )
        ]
        face = visible[0] if len(visible) == 1 else None
        lines = [
            line
            for line in percept.screen_texts
            if line.time_ms == frame.time_ms and line.box.y0 + line.box.y1 >= frame.height
        ]
        for name, title in _plate_on_frame(lines) if face is not None else []:
            if face is not None and is_person(name):
                plate = NamePlate(face, name, title, frame.time_ms)
                plates.setdefault((face, name.casefold()), plate)
    # A face that has several names in one clip has none.
    found = list(plates.values())
    faces = [plate.face for plate in found]
    return [plate for plate in found if faces.count(plate.face) == 1]


def _plate_on_frame(lines: Sequence[ScreenText]) -> list[tuple[str, str]]:
    """Return name and occupation of the plate on a frame, on two adjacent lines or on one."""
    legible = [line for line in lines if line.score >= MIN_SCORE]
    pairs = [(upper, lower) for upper in legible for lower in legible if _adjacent(upper, lower)]
    stacked = [
        (name.text.strip(), title.text.strip())
        for name, title in pairs
        if is_name_plate(name.text, title.text)
    ]
    # ``Name, Title`` or ``Name | Title``.
    split = [_SEPARATOR.split(line.text.strip(), maxsplit=1) for line in legible]
    inline = [(one[0], one[1]) for one in split if len(one) == 2 and is_name_plate(one[0], one[1])]
    candidates = list(dict.fromkeys([*stacked, *inline]))
    # With two plates and one face on a frame, it is unknown which plate is the face's.
    return (
        [(name.title() if name.isupper() else name, title) for name, title in candidates]
        if len(candidates) == 1
        else []
    )


def is_name_plate(name: str, title: str) -> bool:
    """Tell whether two lines read like a person's name and their occupation.

    A name of one word is accepted only if the other line is an occupation and nothing else.
    """
    parts = re.findall(r"[a-zà-ÿ]+", name.lower())
    ordinary = (load_words("not_names") | load_words("occupations")).intersection(parts)
    if ordinary or not parts:
        return False
    occupations = load_words("occupations")
    if _PLATE.fullmatch(name.strip()):
        return bool(occupations.intersection(re.findall(r"[a-zà-ÿ]+", title.lower())))
    occupation = _OCCUPATION.fullmatch(title.strip())
    return bool(
        _FIRST_NAME.fullmatch(name.strip()) and occupation and occupation[1].lower() in occupations
    )


def _adjacent(first: ScreenText, second: ScreenText) -> bool:
    upper, lower = sorted((first, second), key=lambda line: (line.box.y0, line.box.y1))
    height = max(line.box.y1 - line.box.y0 for line in (first, second))
    gap = lower.box.y0 - upper.box.y1
    shared = min(first.box.x1, second.box.x1) - max(first.box.x0, second.box.x0)
    return first is not second and -height / 2 <= gap <= 1.5 * height and shared > 0


# Formats memories as lines of text with speaker and source; pure.


def format_line(memory: Line, people: ClipPeople) -> str:
    """Format a memory: ``Omar: text`` if said, ``On screen: text`` if read, else the text.

    Tags are replaced by known names, except in lines that state a name.
    """
    text = memory.text if _is_name_statement(memory) else people.replace_tags(memory.text)
    if memory.source == MemorySource.READ and not memory.tags:
        return f"On screen: {text}"
    speaker = people.label(memory.speaker) if memory.speaker else None
    return with_attribution(text, memory.source, speaker)


def display_line(memory: Memory, people: ClipPeople) -> str:
    """Format a memory for display, with one name or number for each person."""
    text = format_line(memory, people)
    return text if _is_name_statement(memory) else people.display(text)


def display_segment(segment: Segment, people: ClipPeople) -> Segment:
    """Return a segment with names in place of tags, and of replaced names, where known."""
    texts = {
        "label": people.update_names(segment.label),
        "summary": people.update_names(segment.summary),
    }
    return segment.model_copy(update=texts)


def _is_name_statement(memory: Line) -> bool:
    return memory.kind == MemoryKind.CHARACTER and " is named " in memory.text


def search_text(memory: Line, people: ClipPeople) -> str:
    """Return the text that a memory's vector is computed from, after the speaker's name if known.

    Questions name people; a tag would only be noise to an embedding.
    """
    text = people.replace_tags(memory.text)
    speaker = people.label(memory.speaker) if memory.speaker else ""
    return text if not speaker or TAG.fullmatch(speaker) else f"{speaker}: {text}"


def format_clip(drafts: Sequence[MemoryDraft], people: ClipPeople) -> str:
    """Format all lines of a clip, in order, one per line."""
    return "\n".join(format_line(draft, people) for draft in drafts)


# Takes a person's names and tags out of texts; pure.

SOMEBODY = "somebody"
"""Replaces the names of a forgotten person."""

MIN_LETTERS = 3
"""Words of a name with fewer letters are not erased on their own."""

_ANY_WORD = re.compile(r"[^\W\d_]+")
TITLES = frozenset(
    {"doctor", "professor", "miss", "mrs", "sir", "dame", "lord", "lady", "judge", "captain"}
    | {"mr", "ms", "dr", "prof"}
)
"""Words before a name that are not part of it."""
_SHARED = TITLES | {"the", "and", "von", "van"}
"""Words of names that are not erased on their own."""


class NameEraser:
    """Replaces tags, whole names in any case, and single words of names where capitalised.

    Args:
        others: All names of other people; names and words that they share are not erased.
    """

    def __init__(self, tags: Iterable[str], names: Iterable[str], others: Iterable[str]) -> None:
        other_names = {name.casefold() for name in others}
        words = {word for name in other_names for word in _ANY_WORD.findall(name)}
        self.tags = sorted(tag.strip("<>") for tag in tags)
        self.names = sorted(
            {n for n in names if n.casefold() not in other_names}, key=len, reverse=True
        )
        self.parts = sorted(
            {
                word
                for name in self.names
                for word in _ANY_WORD.findall(name)
                if len(word) >= MIN_LETTERS and word.casefold() not in words | _SHARED
            }
        )

    @property
    def search_terms(self) -> list[str]:
        """Terms to search for, case-insensitively: other texts need no erasing."""
        return [*self.tags, *self.names, *self.parts]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        tags = "|".join(rf"[<‹]?\b{tag}\b[>›]?" for tag in self.tags)
        names = "|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in self.names)
        forms = sorted({f for part in self.parts for f in (part, part.upper(), part.title())})
        parts = "|".join(rf"(?<!\w){form}(?!\w)" for form in forms if form != form.lower())
        patterns = [tags, f"(?i:{names})" if names else "", parts]
        return re.compile("|".join(pattern for pattern in patterns if pattern) or r"(?!)")

    def erase(self, text: str) -> str:
        """Replace the person's tags and names by a neutral word."""
        return self._pattern.sub(SOMEBODY, text)

    def erase_json(self, value: Any) -> Any:
        """Return a JSON value with `erase` applied to every text in it."""
        if isinstance(value, str):
            return self.erase(value)
        if isinstance(value, Mapping):
            return {key: self.erase_json(item) for key, item in value.items()}
        if isinstance(value, Sequence):
            return [self.erase_json(item) for item in value]
        return value
