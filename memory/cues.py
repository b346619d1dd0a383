"""Reads what cues of subtitles say, by whom, and once where captions roll up; pure."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from domain.sentences import share_span
from domain.time import TimeSpan
from domain.words import make_storable

_Turns = tuple[TimeSpan | None, list[tuple[str | None, str]]]
"""When a cue is shown, and what each speaker says in it."""
_Prefix = tuple[str | None, bool, str]
"""Who a line may begin with as its speaker, whether that is sure, and what is said."""

ROLLING_GAP_MS = 200
"""A cue within this time after another may repeat its words, as in roll-up captions."""

_VOICE_TAG = re.compile(r"<v(?:\.[\w.]++)?\s++([^<>]++)>", re.IGNORECASE)
_DRAWING = re.compile(r"\{[^{}]*\\p[1-9][^{}]*\}[^{]*+")
"""What follows in Advanced SubStation where drawing is on: lines and curves, no words."""
_MARKUP = re.compile(r"<[^<>]*+>|\{\\[^{}]*+\}")
_LINE_BREAK = re.compile(r"\\[Nn]|\n")
_LONG_CHARACTER_REFERENCE = re.compile(r"&#\d{20,}+;?")
"""A character reference with too many digits, which Python may refuse to parse."""
_PREFIX = re.compile(
    r"(?:>>+|[-\u2013\u2014])?\s*+([^:\uff1a]{1,60}+)(?:\uff1a|:(?![\d/]))\s*+(?=\S)"
)
_ASIDE = re.compile(
    r"(?:(?<=\S)\s*+|^(?=.*[^\])\uff09]$))(?:\([^()]*+\)|\[[^\[\]]*+\]|\uff08[^\uff08\uff09]*+\uff09)"
)
_PAIRS = (("(", ")"), ("[", "]"), ("\uff08", "\uff09"))
_BRACKETS = " ()[]\uff08\uff09\u3010\u3011"
_NAME_WORD = re.compile(r"[^\W\d_](?:[\w.&\u2019'-]*\w)?\.?")
_PARTICLES = ("al", "bin", "da", "de", "del", "der", "di", "el", "la", "of", "the", "van", "von")
_MOST_WORDS, _MOST_SIGNS, _MOST_REPEATED, _INSTANT_MS = 4, 12, 100, 100
_NO_SPEAKERS = frozenset((Path(__file__).with_name("no_speakers.txt")).read_text("utf-8").split())
"""What stands before a colon as often as a name, and is none."""


def spoken_lines(
    cues: Iterable[tuple[TimeSpan, str]],
) -> Iterator[tuple[TimeSpan, str | None, str]]:
    """Yield when, by whom and what is said in cues, in order of time and without mark-up.

    Of captions that roll up, where a cue shows again what the one before it showed and goes on,
    each phrase comes once. Several speakers in one cue are several lines, which share its time.
    """
    in_order = sorted(cues, key=lambda cue: (cue[0].start_ms, cue[0].end_ms))
    read = [_read(raw) for _, raw in in_order]
    prefixes = [[one for _, _, one in found] for found in read]
    named = [{name for name, _, _ in found if name} for found in prefixes]
    often = Counter(name for names in named for name in names)
    sure = {name for found in prefixes for name, is_sure, _ in found if is_sure}
    # By itself "Chicago: the windy city" may be a heading, and so may any noun in German. In a
    # file that names who speaks, names recur, or are in most cues.
    usual = 2 * sum(map(bool, named)) >= len(in_order)
    speakers = {name for name, count in often.items() if usual or count > 1 or name in sure}
    spans = (span for span, _ in in_order)
    turns = [(span, _turns(found, speakers)) for span, found in zip(spans, read, strict=True)]
    repeated = [_repeated(before, now) for before, now in pairwise([(None, []), *turns])]
    # Somebody may say the same twice: captions roll up if most cues repeat several words and go
    # on, or stand for an instant, as YouTube's between two lines.
    rolling = [
        count > 1 and (count < _word_count(said) or span.length_ms <= _INSTANT_MS)
        for count, (span, said) in zip(repeated, turns, strict=True)
    ]
    rolls = 2 * sum(rolling) > len(turns) > 2
    for (span, said), again in zip(turns, repeated, strict=True):
        if again == _word_count(said) and span.length_ms > _INSTANT_MS:
            again = 0
        left = list[tuple[str | None, str]]()
        for speaker, text in said:
            new = text.split()
            dropped = min(again, len(new)) if rolls else 0
            again -= dropped
            if new[dropped:]:
                left.append((speaker, " ".join(new[dropped:])))
        parts = share_span(span, [len(text) for _, text in left]) if len(left) > 1 else [span]
        for (speaker, text), part in zip(left, parts, strict=False):
            yield part, speaker, text


def _word_count(said: list[tuple[str | None, str]]) -> int:
    return sum(len(text.split()) for _, text in said)


def _repeated(before: _Turns, now: _Turns) -> int:
    """Return how many words of a cue are the last ones of the cue right before it."""
    if before[0] is None or now[0] is None or now[0].start_ms - before[0].end_ms > ROLLING_GAP_MS:
        return 0
    shown, again = (
        [word for _, text in said for word in text.split()] for _, said in (before, now)
    )
    most = min(len(shown), len(again), _MOST_REPEATED)
    return next((n for n in range(most, 0, -1) if shown[-n:] == again[:n]), 0)


def _read(raw: str) -> list[tuple[str | None, str, _Prefix]]:
    """Return the lines of a cue: the voice tag that each stands behind, its words, its prefix."""
    # What is before a voice tag, then each name with what follows.
    first, *voiced = _VOICE_TAG.split(_DRAWING.sub("", raw))
    found: list[tuple[str | None, str, _Prefix]] = []
    for name, marked_up in [("", first), *zip(voiced[::2], voiced[1::2], strict=True)]:
        voice = _one_line(name) or None
        for marked_line in filter(str.strip, _LINE_BREAK.split(marked_up)):
            unmarked = _LONG_CHARACTER_REFERENCE.sub("\ufffd", _MARKUP.sub("", marked_line))
            line = _one_line(html.unescape(unmarked))
            found.append((voice, line, _prefix(line)))
    return found


def _turns(
    lines: Iterable[tuple[str | None, str, _Prefix]], speakers: Collection[str]
) -> list[tuple[str | None, str]]:
    """Join the lines of a cue by who speaks: by voice, by prefix, or ``- Hello`` on its line."""
    turns: list[tuple[str | None, list[str]]] = []
    for voice, line, (name, _, said) in lines:
        if voice or name not in speakers:
            name, said = voice, line.removeprefix("-").strip()
        if not said:
            continue
        if turns and name in (None, turns[-1][0]) and not line.startswith("-"):
            turns[-1][1].append(said)
        else:
            turns.append((name, [said]))
    # Joined once at the end: a cue of many thousand lines took time with the square of them.
    return [(name, " ".join(parts)) for name, parts in turns]


def _one_line(text: str) -> str:
    return " ".join(make_storable(text).split())


def _prefix(line: str) -> _Prefix:
    """Read ``OMAR: Hello``, also with an aside, in brackets, or behind a mark."""
    prefix = _PREFIX.match(line)
    raw = prefix[1].strip("\u266a\u266b ") if prefix else ""
    name = _ASIDE.sub(" ", raw).strip(_BRACKETS)
    if not prefix or any(raw.count(a) != raw.count(b) for a, b in _PAIRS) or not _is_name(name):
        return None, False, line
    said = line[prefix.end() :]
    # A word with digits is a label, as SPEAKER_01.
    plain = [word if re.search(r"\d", word) else word.title() for word in name.split()]
    shown = " ".join(plain) if name.isupper() else name
    # In a file in capitals, these say nothing.
    sure = line.startswith(">>") or (name.isupper() and not said.isupper())
    return shown, sure, said


def _is_name(text: str) -> bool:
    """Check whether what stands before a colon can be the name of a speaker, in any script."""
    words = [word for word in text.split() if not word.strip("#").isdigit() and word != "&"]
    if not 0 < len(words) <= _MOST_WORDS or {word.casefold() for word in words} <= _NO_SPEAKERS:
        return False
    if not any(letter.isupper() or letter.islower() for letter in text):
        # Scripts without capitals: a name is short, of letters and what is written around them.
        signs = [unicodedata.category(sign)[0] for sign in "".join(words)]
        return len(words) <= 2 and len(signs) <= _MOST_SIGNS and set(signs) <= {"L", "M"}
    starts = [word for word in words if word not in _PARTICLES]
    return bool(starts) and all(
        _NAME_WORD.fullmatch(word) and not word[0].islower() for word in starts
    )
