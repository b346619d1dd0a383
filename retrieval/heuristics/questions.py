"""What a question's words say: its language, its times, what it asks for, and it as a statement.

What it asks of how a video is built is told by its likeness to examples.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from domain.sentences import KIND_WORDS
from models.ports import TextEmbedder
from retrieval.relevance import CosineScale
from retrieval.terms import content_words, plain_words, stem, terms

# What type of thing a question asks for, by its words (English), and which entities are of it.

NUMBERS = frozenset({"CARDINAL", "ORDINAL", "PERCENT", "MONEY", "QUANTITY", "DATE", "TIME"})
TIMES = frozenset({"DATE", "TIME"})
PEOPLE = frozenset({"PERSON", "ORG", "NORP"})
PLACES = frozenset({"GPE", "LOC", "FAC", "ORG"})
"""Labels of spaCy's named entities."""

_ASKED: tuple[tuple[frozenset[str], str], ...] = (
    (
        NUMBERS,
        r"how (?:many|much|long|old|far|big|tall|often|fast|heavy|large|high)\b"
        r"|\b(?:percentage|percent|number|share|price|amount|cost) of\b",
    ),
    (TIMES, r"\b(?:what|which) (?:year|date|day|month|century|decade)\b"),
    (PEOPLE, r"^who(?:m|se)?\b"),
    (
        PLACES,
        r"^where\b|\b(?:what|which) (?:city|country|state|town|place|university|school|company"
        r"|firm|bank|organi[sz]ation)\b",
    ),
)
_COMPILED = tuple((labels, re.compile(rule, re.IGNORECASE)) for labels, rule in _ASKED)


def asked_type(question: str) -> frozenset[str]:
    """Return the labels of the entities that may answer a question; none where any thing may."""
    return next((labels for labels, rule in _COMPILED if rule.search(question)), frozenset())


# Language detection for questions, and whether the text model covers the language.

ENGLISH = "en"
MIN_HITS = 2
"""Minimum number of function words of a language, which must exceed any other language's."""


@dataclass(frozen=True)
class Language:
    """A language, or several with one script: the name, and codes of ISO 639-1."""

    name: str
    codes: tuple[str, ...]


def detect_language(text: str) -> Language | None:
    """Detect the language of a text by script, else by function words; None if undecided."""
    return _by_letters(text) or _by_words(text)


def _by_letters(text: str) -> Language | None:
    """Detect the language by the script of most letters; None for Latin."""
    if text.isascii():
        return None
    letters = [
        unicodedata.name(letter, "").partition(" ")[0] for letter in text if letter.isalpha()
    ]
    counts = Counter(letters)
    if not counts:
        return None
    script, count = counts.most_common(1)[0]
    if "HIRAGANA" in counts and script == "CJK":
        script = "HIRAGANA"
    entry = _word_lists()["letters"].get(script) if 2 * count > len(letters) else None
    return None if entry is None else Language(entry["name"], tuple(entry["codes"]))


def _by_words(text: str) -> Language | None:
    codes = _codes_by_word()
    hits = Counter(code for word in plain_words(text) for code in codes.get(word, ()))
    (best, count), *others = [*hits.most_common(2), ("", 0)]
    if count < MIN_HITS or count == others[0][1]:
        return None
    return Language(_word_lists()["words"][best]["name"], (best,))


@lru_cache(1 << 12)
def is_english(text: str) -> bool:
    """Check whether the rules for English apply to a text: it is English, or that is undecided."""
    # In another language they are off, though some of its words look like theirs.
    language = detect_language(text)
    return language is None or ENGLISH in language.codes


def function_words(text: str) -> frozenset[str]:
    """Return the function words of a text's language as search terms; none for English."""
    language = _by_words(text)
    code = language.codes[0] if language else ENGLISH
    return frozenset() if code == ENGLISH else frozenset(_stems(code))


@cache
def _stems(code: str) -> tuple[str, ...]:
    entry = _word_lists()["words"][code]
    return tuple(map(stem, f"{entry['words']} {entry.get('also', '')}".split()))


@cache
def _codes_by_word() -> dict[str, list[str]]:
    codes: dict[str, list[str]] = {}
    for code, entry in _word_lists()["words"].items():
        for word in set(entry["words"].split()):
            codes.setdefault(word, []).append(code)
    return codes


@cache
def _word_lists() -> dict[str, dict[str, Any]]:
    data = resources.files("domain.word_lists").joinpath("tongues.toml").read_text("utf-8")
    return tomllib.loads(data)


def language_note(text: str, covered: Collection[str]) -> str:
    """Return a note for users if the text model does not cover the language of a question.

    Args:
        covered: Codes of the model's languages; empty: unknown, or all.

    Returns:
        One sentence; empty if the model covers the language, or it is undecided.
    """
    language = detect_language(text) if covered else None
    if language is None or set(language.codes) & set(covered):
        return ""
    return (
        f"This profile's text model was made for {', '.join(covered)}; in {language.name} only "
        "equal words are found reliably."
    )


# Questions restated like lines of memory: without framing, or as statements (English).

_NOW = re.compile(  # "Now I cook, who ...", or a last line after a line that ends with a comma
    r"^(?:now|this time)\b(?:(?=.*$).*?[,，]\s*(?=\w)|.*[,，][^\S\n]*+\n\s*+(?=\w))(.*)$", re.I
)
_ASKED_TIME = re.compile(
    r"^(?:in|on|at)?\s*(?:when|what time)\s+(?:was|were|is|did)\s+"
    r"(?:the\s+)?(?:last|first)\s+time\s+(?:that\s+)?",
    re.I,
)
_ORDER = re.compile(r"\b(?:the\s+)?(?:last|first|previous)\s+time\b(?:\s+that)?", re.I)
_DAY_WORDS = re.compile(
    r"\b(?:last night|this morning|this afternoon|yesterday|today|tonight|just now|usually"
    r"|previously|before)\b",
    re.I,
)
_WHO_ASKS_OBJECT = re.compile(r"^who\s++(?:did|do|does)\s++(\w++\s++\w.*)$", re.I)
_WHOSE = re.compile(r"^whose\b", re.I)
_WHO = re.compile(r"^who\b", re.I)
_WHY = re.compile(r"^why\s+(?:did|do|does|didn't|doesn't|don't)?\s*", re.I)
_SELF = re.compile(r"me|mine|i", re.I)


def core_question(question: str) -> str:
    """Remove a question's question mark, its lead-in "Now I ..., ", and words of time and order.

    In another language than English, only the question mark.
    """
    text = question.strip().rstrip("?？. ")
    if not is_english(question):
        return re.sub(r"\s+", " ", text)
    now = _NOW.match(text)
    if now and len(now.group(1).split()) >= 4:
        text = now.group(1)
    for frame in (_ASKED_TIME, _ORDER, _DAY_WORDS):
        text = frame.sub("", text)
    return re.sub(r"\s+", " ", text).strip(" ,")


def statement(question: str, option: str) -> str:
    """Restate a question as a statement, with ``option`` in place of its question word, roughly.

    In another language than English, the option follows the question.
    """
    text, answer = core_question(question), option.strip().rstrip(".")
    if not is_english(question):
        return f"{text} {answer}"
    asks_object = _WHO_ASKS_OBJECT.match(text)
    if _SELF.fullmatch(answer):
        answer = "I" if _WHO.match(text) and not asks_object else "me"
    if re.match(r"because\b", answer, re.I):
        return f"{_WHY.sub('', text)} {answer}"
    if _WHOSE.match(text):
        owner = answer if answer.endswith("'s") else f"{answer}'s"
        return _WHOSE.sub(lambda _: owner, text)
    if asks_object:
        return f"{asks_object.group(1)} {answer}"
    return _WHO.sub(lambda _: answer, text) if _WHO.match(text) else f"{text} {answer}"


# Temporal expressions in questions, as soft memberships in [0, 1] over video time (English).
#
# Video time that spans days counts from a midnight: ``(day - 1) * 86400`` plus the second of the
# day.

Times = NDArray[np.float64]
"""Seconds of video time, shape (N,)."""

DAY, HOUR = 86_400.0, 3_600.0
_PARTS = {  # hours of the day, generous at both ends; a night runs past midnight
    "morning": (5.0, 11.5),
    "noon": (11.5, 14.0),
    "afternoon": (12.5, 18.75),
    "evening": (18.0, 24.0),
    "night": (18.25, 29.0),
}
_COUNT = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {word: float(count) for count, word in enumerate(_COUNT.split())} | {"a": 1.0, "an": 1.0}
_NUMBER = rf"(?:\d+(?:\.\d+)?|{'|'.join(_NUMBERS)})"
# Larger counts are clipped: they would overflow.
_MAX_COUNT = 1e9
_AGO = re.compile(
    rf"\b({_NUMBER})(?: and an? half)? (day|hour|minute|min)s?(?: and an? half)?"
    rf"(?: ({_NUMBER}) hours?)? ago"
)
_HALF = re.compile(r"\band an? half\b")
_PART = {part: re.compile(rf"\b{part}\b") for part in _PARTS}
_ANY_PART = "|".join(_PARTS)
_BEFORE_YESTERDAY = re.compile(rf"\b(?:day|{_ANY_PART}) before yesterday\b")
_TODAY = re.compile(rf"\btoday\b|\bthis (?:{_ANY_PART})\b")
_IN_PART = re.compile(rf"\b(?:in|on|at) (?:the )?(?:{_ANY_PART})\b")

PLAN = re.compile(
    r"\b(?:plan|plans|planning|going to|will|should|need|needs|needed|want|wants|have in|later"
    r"|tomorrow|task|tasks)\b",
    re.I,
)
"""Words of plans: a time beside them is that of the plan, not of the line."""
LATEST = re.compile(r"\b(?:last|previous|previously|before|latest|just now|just)\b", re.I)
"""Words that ask for the latest of several moments."""


def _number(word: str) -> float:
    return _NUMBERS[word] if word in _NUMBERS else min(float(word), _MAX_COUNT)


def _soft_interval(times: Times, start: float, end: float, soft: float = HOUR) -> Times:
    """Return 1 inside ``[start, end]``, falling linearly to 0 over ``soft`` seconds outside."""
    outside = np.maximum(np.maximum(start - times, times - end), 0.0)
    return np.clip(1 - outside / soft, 0, 1)


def _log_gaussian(times: Times, as_of: float, ago: float, width: float = 0.35) -> Times:
    """Return a Gaussian over the log of the age: people round ages in proportion to them."""
    ratio = np.maximum(as_of - times, 60.0) / max(ago, 60.0)
    return np.asarray(np.exp(-0.5 * (np.log(ratio) / width) ** 2), dtype=np.float64)


def _part_of_day(text: str) -> tuple[float, float] | None:
    return next((_PARTS[part] for part, word in _PART.items() if word.search(text)), None)


def _on_day(times: Times, as_of: float, back: float, part: tuple[float, float] | None) -> Times:
    midnight = np.floor(as_of / DAY) * DAY - back * DAY
    start, end = part or (0.0, 24.0)
    return _soft_interval(times, midnight + start * HOUR, midnight + end * HOUR)


def _ago(text: str, times: Times, as_of: float) -> Times | None:
    """Evaluate ``3 hours ago``, ``two days ago``, ``a day 4 hours ago``, ``half a day ago``."""
    if re.search(r"\bhalf a day ago\b", text):
        return _log_gaussian(times, as_of, 12 * HOUR)
    if re.search(r"\bhalf an hour ago\b", text):
        return _log_gaussian(times, as_of, 0.5 * HOUR)
    match = _AGO.search(text)
    if match is None:
        return None
    count = _number(match[1]) + (0.5 if _HALF.search(text) else 0.0)
    if match[2] != "day":
        return _log_gaussian(
            times, as_of, max(60.0, count * (HOUR if match[2] == "hour" else 60.0))
        )
    days = _number(match[1])
    hours = match[3]
    part = _part_of_day(text)
    if part:
        return _on_day(times, as_of, days, part)
    ago = days * DAY + (_number(hours) * HOUR if hours else 0.0)
    if hours:
        return _log_gaussian(times, as_of, ago, width=0.1)
    return _soft_interval(times, as_of - ago - 8 * HOUR, as_of - ago + 8 * HOUR, soft=8 * HOUR)


def _days_back(text: str) -> tuple[float, tuple[float, float] | None] | None:
    """Return the days back that ``text`` refers to, and hours of the day; None for none."""
    part = _part_of_day(text)
    if _BEFORE_YESTERDAY.search(text):
        return 2.0, part
    if re.search(r"\byesterday\b", text):
        return 1.0, part
    if re.search(r"\blast (?:night|evening)\b", text):
        return 1.0, _PARTS["night"]
    if re.search(r"\btonight\b", text):
        return 0.0, _PARTS["night"]
    return (0.0, part) if _TODAY.search(text) else None


def temporal_fit(text: str, times: Times, as_of: float) -> Times | None:
    """Return the fit of each time with the temporal expression in ``text``, in [0, 1], (N,).

    Args:
        text: A question or an option, such as "the day before yesterday at noon".
        times: Seconds of video time, (N,).
        as_of: When the question is asked, in seconds of video time.

    Returns:
        None if the text has no temporal expression, or is in another language than English.
    """
    if not is_english(text):
        return None
    text = text.lower()
    ago = _ago(text, times, as_of)
    if ago is not None:
        return ago
    day = _days_back(text)
    if day is not None:
        return _on_day(times, as_of, day[0], day[1])
    if re.search(r"\bjust\b", text):
        return _soft_interval(times, as_of - HOUR, as_of, soft=2 * HOUR)
    return _on_day(times, as_of, 0.0, _part_of_day(text)) if _IN_PART.search(text) else None


def are_times(options: tuple[str, ...], as_of: float) -> bool:
    """Check whether at least 3 in 4 options, of two or more, are short temporal expressions."""
    now = np.array([as_of])
    are_temporal = [
        len(option.split()) <= 8 and temporal_fit(option, now, as_of) is not None
        for option in options
    ]
    return len(are_temporal) > 1 and sum(are_temporal) >= 0.75 * len(are_temporal)


class Asks(StrEnum):
    """What can be told from order, people and counts, whatever the words of the question."""

    PEOPLE = "people"
    SPEAKERS = "speakers"
    BEGINNING = "beginning"
    END = "end"
    ABOUT = "about"
    OUTLINE = "outline"
    THINGS = "things"
    LAST_SEEN = "last_seen"
    READ = "read"


# Examples of a kind whose mean likeness counts: one alone may be like by chance.
NEAREST = 2
LEAST = 0.55
"""Nearness in [0, 1] below which a question is like none of the examples."""
_ORDINARY = "ordinary"


class StructureQuestions:
    """Tells questions about structure from ordinary ones with a text encoder; thread-safe."""

    def __init__(self, text: TextEmbedder, scale: CosineScale) -> None:
        self._text, self._scale = text, scale
        self._kinds = [kind for kind, examples in _examples().items() for _ in examples]
        texts = [example for examples in _examples().values() for example in examples]
        self._vectors = text.embed(texts)

    def of(self, question: str) -> Asks | None:
        """Return what a question asks for; None for an ordinary one. Names should be "she"."""
        cosines = self._vectors @ self._text.embed([question])[0]
        likeness = {
            kind: float(np.sort(cosines[[one == kind for one in self._kinds]])[-NEAREST:].mean())
            for kind in _examples()
        }
        best = max(likeness, key=lambda kind: likeness[kind])
        near = self._scale.nearness(likeness[best]) >= LEAST
        return Asks(best) if near and best != _ORDINARY else None


@cache
def _examples() -> dict[str, list[str]]:
    file = resources.files(__package__) / "structure_questions.toml"
    return tomllib.loads(file.read_text("utf-8"))


_OF_KIND = re.compile(
    r"\b(?:what|which)\s+(?:(?!(?:do|does|did|is|are|was|were|can|the)\b)\w+\s+){0,2}"
    rf"(?:{KIND_WORDS})\b\s*(?:$|[?.!]|(?:is|are|was|were|can|could|appears?|shows?|stands?|lies?|hangs?|sits?)\b)",
    re.IGNORECASE,
)


def asks_for_kind(question: str) -> bool:
    """Check whether a question asks which things of a kind there are, such as animals (English)."""
    return _OF_KIND.search(question) is not None


LONGEST = 500
"""Characters of a question about order, at most."""


class Order(NamedTuple):
    """A question about what comes beside a moment, or when something comes up first or last.

    ``said``: it asks when somebody speaks of it, rather than when it is there.
    """

    place: str
    subject: str
    said: bool = False


_ASKS = re.compile(r"\b(?:what|who)\b", re.IGNORECASE)
_SIDE = re.compile(r"\b(after|before|following)\s+(\S.*)", re.IGNORECASE | re.DOTALL)
_FIRST = re.compile(r"\b(first|last)\b", re.IGNORECASE)
_WHEN = re.compile(r"\s*(?:when|at (?:what|which) (?:time|point|moment))\b", re.IGNORECASE)
_WORDS = re.compile(r"[^\W_]+")
_SPOKEN_OF = re.compile(
    r"\b(?:mention|nam|talk|discuss|s[pa]id|say|spoke|br[io]|c[ao]mes? up)", re.IGNORECASE
)
_TELLING = frozenset(
    terms(
        "mention mentions mentioned come comes came happen happens happened follow follows "
        "show shows shown see seen appear appears appeared talk talks talked tell tells told "
        "right just directly immediately shortly word words thing sentence speak speaks "
        "spoken appearance bring brings brought name named video film clip discussed discuss "
        "hear heard start starts "
    )
)
"""Words of a question that say nothing of its subject."""


def order_of(question: str) -> Order | None:
    """Return what a question asks of the order of things (English); None for any other.

    Nothing but the moment, or the subject, may be named in it: what somebody does with a thing
    after a moment is asked of the thing.
    """
    question = question.strip().rstrip("?.! ")
    if len(question) > LONGEST:
        return None
    side = _SIDE.search(question)
    before = question[: side.start()] if side else ""
    if side and _ASKS.search(before) and not content_words(without_telling(before)):
        place = "before" if side[1].lower() == "before" else "after"
        return Order(place, without_telling(side[2]) or side[2])
    if _WHEN.match(question) and (first := _FIRST.search(question)):
        subject = without_telling(question[question.find(" ") :].replace(first[1], " ", 1))
        said = _SPOKEN_OF.search(question) is not None
        return Order(first[1].lower(), subject, said) if content_words(subject) else None
    return None


def without_telling(text: str) -> str:
    """Return a text without the words that say nothing of its subject."""
    return _WORDS.sub(lambda word: "" if _TELLING & {*terms(word[0])} else word[0], text).strip()
