"""Names that a clip itself states: somebody says who they are, or a name plate shows it; pure.

Better no name than a wrong one: a sentence must plainly introduce its speaker, and a plate counts
only while one face is in view and a line with an occupation goes with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from domain.media import Percept, ScreenText, Utterance
from domain.word_lists import load_words
from domain.wording import split_sentences
from people.face_voice_evidence import visible_spans

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
"""A face seen this close to a keyframe counts as in view on it; keyframes are always searched."""

MIN_SCORE = 0.8
"""Name plates must be read at least this well."""


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
            found = pattern.search(sentence)
            if found and _is_name(found[1]):
                return found[1]
    return None


def _is_name(text: str) -> bool:
    parts = text.lower().split()
    is_nationality = len(parts) == 1 and re.search(r"(?:ese|ish|ican|ian)$", parts[0])
    return not is_nationality and not load_words("not_names").intersection(parts)


def find_name_plates(percept: Percept) -> list[NamePlate]:
    """Find the name plates of a clip: one for each face and name, the first reading."""
    found: dict[tuple[int, str], NamePlate] = {}
    for time_ms in sorted({line.time_ms for line in percept.screen_texts}):
        face = _only_face(percept, time_ms)
        lines = [line for line in percept.screen_texts if line.time_ms == time_ms]
        for name, title in _plate_on_frame(lines) if face is not None else []:
            assert face is not None  # noqa: S101 - narrows the type
            found.setdefault((face, name.casefold()), NamePlate(face, name, title, time_ms))
    return _unambiguous(list(found.values()))


def _unambiguous(found: Sequence[NamePlate]) -> list[NamePlate]:
    """Leave out faces with two names in one clip: neither is certain."""
    faces = [plate.face for plate in found]
    return [plate for plate in found if faces.count(plate.face) == 1]


def _only_face(percept: Percept, time_ms: int) -> int | None:
    visible = [
        group.number
        for group in percept.faces
        if any(
            s.start_ms - FACE_TOLERANCE_MS <= time_ms <= s.end_ms + FACE_TOLERANCE_MS
            for s in visible_spans(group)
        )
    ]
    return visible[0] if len(visible) == 1 else None


def _plate_on_frame(lines: Sequence[ScreenText]) -> list[tuple[str, str]]:
    """Return name and occupation on a frame: one below the other, or on one line."""
    legible = [line for line in lines if line.score >= MIN_SCORE]
    pairs = [(one, other) for one in legible for other in legible if _adjacent(one, other)]
    found = [
        (one.text.strip(), other.text.strip())
        for one, other in pairs
        if is_name_plate(one.text, other.text)
    ]
    inline = [parts for line in legible for parts in _split_inline(line.text)]
    every = list(dict.fromkeys([*found, *inline]))
    # Two plates on one frame with one face: nothing says whose is whose.
    return [(_title_case(name), title) for name, title in every] if len(every) == 1 else []


def is_name_plate(name: str, title: str) -> bool:
    """Tell whether two lines read like a person's name and their occupation.

    A single name is taken only beside a line that is an occupation and nothing else.
    """
    parts = re.findall(r"[a-zà-ÿ]+", name.lower())
    ordinary = (load_words("not_names") | load_words("occupations")).intersection(parts)
    if ordinary or not parts:
        return False
    occupations = load_words("occupations")
    if _PLATE.fullmatch(name.strip()):
        return bool(occupations.intersection(re.findall(r"[a-zà-ÿ]+", title.lower())))
    plain = _OCCUPATION.fullmatch(title.strip())
    return bool(_FIRST_NAME.fullmatch(name.strip()) and plain and plain[1].lower() in occupations)


def _split_inline(text: str) -> list[tuple[str, str]]:
    """``Name, Title`` or ``Name | Title`` on one line."""
    parts = _SEPARATOR.split(text.strip(), maxsplit=1)
    return [(parts[0], parts[1])] if len(parts) == 2 and is_name_plate(*parts) else []


def _adjacent(one: ScreenText, other: ScreenText) -> bool:
    """Check whether two lines stand right above each other."""
    upper, lower = sorted((one, other), key=lambda line: (line.box.y0, line.box.y1))
    height = max(line.box.y1 - line.box.y0 for line in (one, other))
    gap = lower.box.y0 - upper.box.y1
    shared = min(one.box.x1, other.box.x1) - max(one.box.x0, other.box.x0)
    return one is not other and -height / 2 <= gap <= 1.5 * height and shared > 0


def _title_case(name: str) -> str:
    return name.title() if name.isupper() else name
