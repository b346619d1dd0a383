"""Extractive answers: the sentence around a line that answers an open question.

Speech recognition cuts at pauses, also within sentences: so a line is first joined with adjacent
lines to complete sentences, then the sentence closest to the question is selected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from domain.asking import Evidence
from domain.search import Extract
from domain.time import TimeSpan
from domain.wording import split_sentences
from models.ports import Reranker
from retrieval.heuristics.language import function_words, is_english
from retrieval.line_set import LineSet
from retrieval.people_in_query import line_text, with_names
from retrieval.terms import terms

REACH = 3
"""Maximum number of lines that are joined in either direction."""
PAUSE_MS = 2_000
"""A longer silence ends a sentence."""
SHORT = 5
"""A sentence of fewer words is quoted with the next one."""

SPOKEN = ("said", "subtitle")
"""Sources whose sentences continue from line to line."""

_ENDS = re.compile(r"[.!?…。！？][\"'”’)\]」』]*$")

Score = Callable[[Sequence[str]], Sequence[float]]
"""Scores sentences by how well they answer; higher is better."""


@dataclass(frozen=True)
class CompleteSentences:
    """Consecutive lines that form complete sentences, and their text."""

    lines: tuple[int, ...]
    text: str


def complete_sentences(line_set: LineSet, line: int) -> CompleteSentences:
    """Join a line with the lines before and after it that continue its sentences."""
    lines = [line]
    while len(lines) <= REACH and _continues(
        line_set, before := _adjacent(line_set, lines[0], -1), lines[0]
    ):
        lines.insert(0, before)
    maximum = len(lines) + REACH
    while len(lines) < maximum and _continues(
        line_set, lines[-1], after := _adjacent(line_set, lines[-1], 1)
    ):
        lines.append(after)
    last = _adjacent(line_set, lines[-1], 1)
    if _words(line_set, lines) < SHORT and _same_speech(line_set, lines[-1], last):
        lines.append(last)
    return CompleteSentences(
        tuple(lines), " ".join(line_set.line(number)[1].text.strip() for number in lines)
    )


def _adjacent(line_set: LineSet, line: int, step: int) -> int:
    """Return the next line in a direction; speech skips its subtitles and vice versa."""
    source, number = line_set.line(line)[1].source, line + step
    other = next((name for name in SPOKEN if name != source), "") if source in SPOKEN else ""
    while 0 <= number < line_set.line_count and line_set.line(number)[1].source == other:
        number += step
    return number


def _words(line_set: LineSet, lines: Sequence[int]) -> int:
    return sum(len(line_set.line(number)[1].text.split()) for number in lines)


def _continues(line_set: LineSet, first: int, second: int) -> bool:
    """Check whether a sentence of line ``first`` continues in line ``second``."""
    if not _same_speech(line_set, first, second):
        return False
    return not _ENDS.search(line_set.line(first)[1].text.strip())


def _same_speech(line_set: LineSet, first: int, second: int) -> bool:
    """Check whether both lines are from one speaker and source, without a long pause."""
    if first < 0 or second >= line_set.line_count:
        return False
    (video, before), (source, after) = line_set.line(first), line_set.line(second)
    return (
        video == source
        and before.source == after.source
        and before.source in SPOKEN
        and before.speaker == after.speaker
        and after.start_ms - before.end_ms <= PAUSE_MS
    )


def best_sentence(text: str, score: Score) -> str:
    """Return the best sentence of ``text``, with the next one if it is short or a question."""
    parts = split_sentences(text)
    if len(parts) < 2:
        return text
    scores = list(score(parts))
    best = scores.index(max(scores))
    add_next = parts[best].endswith(("?", "？")) or len(parts[best].split()) < SHORT
    return " ".join(parts[best : best + 1 + add_next])


def score_by_words(question: str) -> Score:
    """Return a score: the share of the question's terms in a sentence, in [0, 1]."""
    english = is_english(question)
    words = set(terms(question, english=english)) - function_words(question)

    def score(parts: Sequence[str]) -> list[float]:
        return [
            len(words & set(terms(part, english=english))) / max(1, len(words)) for part in parts
        ]

    return score


def score_by_reranker(question: str, reranker: Reranker) -> Score:
    """Return a score: the probability by a reranker that a sentence answers."""

    def score(parts: Sequence[str]) -> list[float]:
        return [float(value) for value in reranker.scores(question, list(parts))]

    return score


def extract(
    line_set: LineSet, line: int, score: Score, names: Mapping[str, str], closeness: float
) -> Extract:
    """Quote the answer around a line. ``names`` replace tags, ``closeness`` is the score.

    The first of the refs is the line itself; the others follow in the order of time. Only speech is
    joined and cut into sentences; other lines are quoted completely.
    """
    sentences = complete_sentences(line_set, line)
    video, row = line_set.line(line)
    spoken = row.source in SPOKEN
    text = with_names(best_sentence(sentences.text, score) if spoken else sentences.text, names)
    rows = [line_set.line(number)[1] for number in sentences.lines]
    quoted = [row for row in rows if _is_quoted(row.text, text)] or [row]
    span = TimeSpan.of(quoted[0].start_ms, max(quoted[0].start_ms, quoted[-1].end_ms))
    return Extract(
        text=line_text(row._replace(text=text), names),
        refs=tuple(f"m{line.id}" for line in sorted(quoted, key=lambda line: line is not row)),
        video=video,
        span=span,
        score=closeness,
    )


def quote_evidence(quote: Extract | None, evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Return the lines of a quotation that are not in ``evidence`` yet, as evidence."""
    if quote is None:
        return ()
    known = {e.ref for e in evidence}
    return tuple(
        Evidence(ref=ref, video=quote.video, span=quote.span, text=quote.text, score=quote.score)
        for ref in quote.refs
        if ref not in known
    )


def _is_quoted(line: str, quote: str) -> bool:
    """Check whether the first or the last three words of a line are in a quotation."""
    plain, words = " ".join(quote.split()), line.split()
    return " ".join(words[:3]) in plain or " ".join(words[-3:]) in plain
