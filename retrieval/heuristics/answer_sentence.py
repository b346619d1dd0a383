"""The sentence that answers an open question, quoted from the lines of memory around a moment.

Recognised speech is cut at pauses, and pauses fall inside sentences: so a line is first made
whole with those beside it, then the sentence closest to the question is taken from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from domain.asking import Evidence
from domain.search import Extract
from domain.time import TimeSpan
from domain.wording import split_sentences
from retrieval.line_set import LineSet
from retrieval.people_in_query import line_text, with_names
from retrieval.terms import terms

REACH = 3
"""Lines that a sentence may run on in either direction."""
PAUSE_MS = 2_000
"""A longer silence ends a sentence."""
SHORT = 5
"""A sentence of fewer words leans on the one after it."""

SPOKEN = ("said", "subtitle")
"""Sources whose sentences run on from line to line."""

_ENDS = re.compile(r"[.!?…。！？][\"'”’)\]」』]*$")

Score = Callable[[Sequence[str]], Sequence[float]]
"""How well each of some sentences answers; higher is better."""


@dataclass(frozen=True)
class WholeSentences:
    """Lines that form whole sentences, in order."""

    lines: tuple[int, ...]
    text: str


def whole(among: LineSet, line: int) -> WholeSentences:
    """A line with those beside it that its first and last sentence run on in."""
    lines = [line]
    while len(lines) <= REACH and _runs_on(among, before := _beside(among, lines[0], -1), lines[0]):
        lines.insert(0, before)
    most = len(lines) + REACH
    while len(lines) < most and _runs_on(among, lines[-1], after := _beside(among, lines[-1], 1)):
        lines.append(after)
    last = _beside(among, lines[-1], 1)
    if _words(among, lines) < SHORT and _same_talk(among, lines[-1], last):
        lines.append(last)
    return WholeSentences(
        tuple(lines), " ".join(among.line(number)[1].text.strip() for number in lines)
    )


def _beside(among: LineSet, line: int, step: int) -> int:
    """The line before or after; what was heard and its subtitles are two threads of one talk."""
    own, number = among.line(line)[1].source, line + step
    other = next((source for source in SPOKEN if source != own), "") if own in SPOKEN else ""
    while 0 <= number < among.line_count and among.line(number)[1].source == other:
        number += step
    return number


def _words(among: LineSet, lines: Sequence[int]) -> int:
    return sum(len(among.line(number)[1].text.split()) for number in lines)


def _runs_on(among: LineSet, one: int, other: int) -> bool:
    """Whether a sentence goes on from line ``one`` into line ``other``."""
    if not _same_talk(among, one, other):
        return False
    return not _ENDS.search(among.line(one)[1].text.strip())


def _same_talk(among: LineSet, one: int, other: int) -> bool:
    """Whether one speaker goes on from line ``one`` to line ``other`` without a long pause."""
    if one < 0 or other >= among.line_count:
        return False
    (video, before), (source, after) = among.line(one), among.line(other)
    return (
        video == source
        and before.source == after.source
        and before.source in SPOKEN
        and before.speaker == after.speaker
        and after.start_ms - before.end_ms <= PAUSE_MS
    )


def answering(text: str, score: Score) -> str:
    """The sentence of ``text`` that answers best; with the next where it is short or a question."""
    parts = split_sentences(text)
    if len(parts) < 2:
        return text
    scores = list(score(parts))
    best = scores.index(max(scores))
    leans = parts[best].endswith(("?", "？")) or len(parts[best].split()) < SHORT
    return " ".join(parts[best : best + 1 + leans])


def by_words(question: str) -> Score:
    """Scores sentences by the share of the question's words that they have."""
    words = set(terms(question))

    def score(parts: Sequence[str]) -> list[float]:
        return [len(words & set(terms(part))) / max(1, len(words)) for part in parts]

    return score


def extract(
    among: LineSet, line: int, score: Score, names: Mapping[str, str], closeness: float
) -> Extract:
    """Quote what answers at a line. ``names`` are put for tags, ``closeness`` is its score.

    The line itself is the first of the refs, since it is what was found; the others follow in time.
    Only speech runs on from line to line and is cut into sentences; the rest is quoted as it is.
    """
    found = whole(among, line)
    video, row = among.line(line)
    spoken = row.source in SPOKEN
    text = with_names(answering(found.text, score) if spoken else found.text, names)
    rows = [among.line(number)[1] for number in found.lines]
    kept = [one for one in rows if _shares(one.text, text)] or [row]
    span = TimeSpan.of(kept[0].start_ms, max(kept[0].start_ms, kept[-1].end_ms))
    return Extract(
        text=line_text(row._replace(text=text), names),
        refs=tuple(f"m{one.id}" for one in sorted(kept, key=lambda one: one is not row)),
        video=video,
        span=span,
        score=closeness,
    )


def quoted_beside(quote: Extract | None, found: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The lines that a quotation runs over and that were not found themselves, as evidence."""
    if quote is None:
        return ()
    known = {e.ref for e in found}
    return tuple(
        Evidence(ref=ref, video=quote.video, span=quote.span, text=quote.text, score=quote.score)
        for ref in quote.refs
        if ref not in known
    )


def _shares(line: str, quote: str) -> bool:
    """Whether a line is part of what is quoted: its first or last words are in it."""
    plain, words = " ".join(quote.split()), line.split()
    return " ".join(words[:3]) in plain or " ".join(words[-3:]) in plain
