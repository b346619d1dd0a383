"""First and last mentions of a subject, and the lines before or after a moment."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from difflib import SequenceMatcher

from domain.search import Asks, Finding, Structure
from retrieval.closeness import coverage
from retrieval.heuristics.answer_sentence import complete_sentences
from retrieval.heuristics.credits import asks_for_credits, shows_credits
from retrieval.line_set import LineSet
from retrieval.query_context import QueryContext
from retrieval.signals.words import inverse_document_frequency
from retrieval.structural.beginning_end import part_of
from retrieval.structural.rows import GAP_MS, rows_with_terms
from retrieval.terms import content_words, terms
from retrieval.view_lines import ViewLine

ALIKE = 0.75
"""Minimum similarity of misrecognised words, if another word of the subject is exact."""
LONG, MUCH_ALIKE = 5, 0.85
"""Minimum length and similarity of a misrecognised word that is the only one."""
MAX_LINES = 20_000
"""Maximum number of lines that are searched for misrecognised words."""
SHORT = 4
"""Minimum length of words compared by similarity."""
COVERED = 0.6
"""Minimum IDF-weighted share of the subject's words in the line of the moment."""
NEXT = 2
"""Number of lines after a moment from which no further sentence is quoted."""
FEW_WORDS = 8
"""Number of words after which no further sentence is quoted."""
NEAR_COSINE = 0.5
"""Minimum cosine of a line that mentions the subject in other words."""

Found = tuple[Finding, tuple[ViewLine, ...]]
Near = Callable[[str], Sequence[tuple[ViewLine, float]]]
"""Vector search: lines near a text, with their cosines, best first."""


def first_or_last_mention(context: QueryContext, structure: Structure, near: Near) -> Found | None:
    """Return the first or last line that mentions the subject; None without any."""
    words = [_stem(word) for word in content_words(structure.subject)] or terms(structure.subject)
    for wanted in _by_manner(_candidates(context, structure.subject, words), structure.manner):
        if hits := _hits(context, wanted, structure, words):
            return _finding(context, structure, hits)
    if asks_for_credits(structure.subject) and (rows := [*filter(shows_credits, context.rows)]):
        return _finding(context, structure, rows, exact=False)
    if alike := _similar_sounding(context, words):
        return _finding(context, structure, alike, exact=False)
    close = [row for row, cosine in near(structure.subject) if cosine >= NEAR_COSINE]
    close.sort(key=lambda row: (row.video, row.line.start_ms))
    fitting = [row for row in close if not structure.manner or _fits(row, structure.manner)]
    return _finding(context, structure, fitting, exact=False) if fitting else None


def _stem(word: str) -> str:
    return next(iter(terms(word)), word)


def _fits(row: ViewLine, manner: str) -> bool:
    return row.spoken or row.described if manner == "said" else not row.spoken


def _by_manner(rows: Sequence[ViewLine], manner: str) -> list[list[ViewLine]]:
    """Group lines by manner, the requested manner first."""
    if not manner:
        return [list(rows)]
    fitting = [row for row in rows if _fits(row, manner)]
    return [fitting, [row for row in rows if not _fits(row, manner)]]


def _candidates(context: QueryContext, subject: str, words: Sequence[str]) -> list[ViewLine]:
    """Return lines that may mention a subject: all for a person, else of clips with its words."""
    person = bool(context.people.named_in(subject))
    rows = context.rows if person else rows_with_terms(context, words)
    return [row for row in rows if not row.names_somebody]


def _hits(
    context: QueryContext, rows: Sequence[ViewLine], structure: Structure, words: Sequence[str]
) -> list[ViewLine]:
    """Return the lines that mention a person by any tag, or a thing by its words."""
    people = context.people.named_in(structure.subject)
    tags = {tag for person in people for tag in person.tags}
    # A speaker is present without being mentioned.
    speaks = set() if structure.manner == "said" else tags
    return [
        row
        for place, row in enumerate(rows)
        if row.line.speaker in speaks
        or any(tag in row.line.text for tag in tags)
        or (words and _mentions(rows, place, words))
    ]


def _similar_sounding(context: QueryContext, words: Sequence[str]) -> list[ViewLine]:
    """Return speech with a word similar to the only one; [] for very many lines."""
    if len(words) != 1 or len(words[0]) < LONG or context.all_lines.line_count > MAX_LINES:
        return []
    spoken = (row for row in context.rows if row.spoken)
    return [row for row in spoken if _contains(terms(row.line.text), words[0], MUCH_ALIKE)]


def _mentions(rows: Sequence[ViewLine], place: int, words: Sequence[str]) -> bool:
    """Check whether a line, or it and the next one, has all words, at least one exactly."""
    row, line_terms = rows[place], terms(rows[place].line.text)
    need = ALIKE if row.spoken and len(words) > 1 else 1.0
    if all(_contains(line_terms, word, need) for word in words):
        return any(word in line_terms for word in words)
    return place + 1 < len(rows) and _spans_lines(row, rows[place + 1], words)


def _spans_lines(row: ViewLine, after: ViewLine, words: Sequence[str]) -> bool:
    """Check whether speech ends with the first words and the next line begins with the rest."""
    line_terms, next_terms = terms(row.line.text), terms(after.line.text)
    both = row.spoken and after.spoken and row.line.speaker == after.line.speaker
    if not both or after.line.start_ms - row.line.end_ms > GAP_MS:
        return False
    cuts = range(1, len(words))
    return any(
        line_terms[-cut:] == list(words[:cut])
        and next_terms[: len(words) - cut] == list(words[cut:])
        for cut in cuts
    )


def _contains(line_terms: Sequence[str], word: str, alike: float) -> bool:
    """Check whether a line has a word, or one of at least this similarity."""
    if word in line_terms or alike >= 1.0 or len(word) < SHORT:
        return word in line_terms
    long_terms = (candidate for candidate in line_terms if len(candidate) >= SHORT)
    return any(SequenceMatcher(None, word, candidate).ratio() >= alike for candidate in long_terms)


def _finding(
    context: QueryContext, structure: Structure, hits: Sequence[ViewLine], *, exact: bool = True
) -> Found:
    row = hits[-1] if structure.asks is Asks.LAST else hits[0]
    part = part_of(context, [row])
    finding = Finding(
        asks=structure.asks, subject=structure.subject, manner=structure.manner, parts=(part,)
    )
    fits = not structure.manner or _fits(row, structure.manner)
    return finding.model_copy(update={"exact": exact and fits}), (row,)


def before_or_after(context: QueryContext, structure: Structure, near: Near) -> Found | None:
    """Return the lines directly after or before a moment; None if the moment is not found."""
    anchor, exact = _anchor(context, structure, near)
    if not anchor:
        return None
    rows = [r for r in context.rows if _has_content(r) and r.video == anchor[0].video]
    group = (_after if structure.asks is Asks.AFTER else _before)(context.all_lines, rows, anchor)
    if not group:
        return None
    parts = (part_of(context, group), part_of(context, anchor))
    finding = Finding(
        asks=structure.asks, subject=structure.subject, manner=structure.manner, parts=parts
    )
    return finding.model_copy(update={"exact": exact}), (*group, *anchor)


def _has_content(row: ViewLine) -> bool:
    return row.spoken or row.described


def _anchor(context: QueryContext, structure: Structure, near: Near) -> tuple[list[ViewLine], bool]:
    """Find the sentence that the subject refers to, and whether by its words; [] for none."""
    view, words = context.all_lines, set(terms(structure.subject))
    known = {row.number: row for row in context.rows if _has_content(row)}
    with_words = (row for row in rows_with_terms(context, words) if row.number in known)
    weights = _idf(view, words)

    def covered(row: ViewLine) -> float:
        return coverage((view.line(n)[1] for n in _lines(view, row)), weights)

    scored = ((covered(row), row) for row in with_words)
    share, best = max(scored, key=lambda pair: pair[0], default=(0.0, None))
    if best is not None and share >= COVERED:
        return _tightest(words, [known[n] for n in _lines(view, best) if n in known]), True
    close = (
        r for r, cosine in near(structure.subject) if cosine >= NEAR_COSINE and r.number in known
    )
    row = next(close, None)
    return [] if row is None else [known[n] for n in _lines(view, row) if n in known], False


def _lines(view: LineSet, row: ViewLine) -> tuple[int, ...]:
    return complete_sentences(view, row.number).lines if row.spoken else (row.number,)


def _idf(lines: LineSet, words: Collection[str]) -> dict[str, float]:
    """Return the inverse document frequency of each word over cells."""
    cells = lines.cell_terms
    return {
        word: inverse_document_frequency(
            len(cells), sum(word in cell_terms for cell_terms in cells)
        )
        for word in sorted(words)
    }


def _tightest(words: set[str], lines: list[ViewLine]) -> list[ViewLine]:
    """Strip lines without any of the words from both ends."""
    has_word = [bool(words & set(terms(row.line.text))) for row in lines]
    if not any(has_word):
        return lines
    first, last = has_word.index(True), len(has_word) - has_word[::-1].index(True)
    return lines[first:last]


def _at(row: ViewLine) -> tuple[int, int]:
    return (row.line.start_ms, row.line.id)


def _after(view: LineSet, rows: Sequence[ViewLine], anchor: Sequence[ViewLine]) -> list[ViewLine]:
    """Return the next sentences, until they have ``NEXT`` lines or ``FEW_WORDS`` words."""
    remaining = [row for row in rows if _at(row) > _at(anchor[-1])]
    known, sentence_lines = {row.number: row for row in remaining}, list[ViewLine]()
    while remaining and len(sentence_lines) < NEXT and sum(map(_words, sentence_lines)) < FEW_WORDS:
        sentence_lines += [
            known[n]
            for n in _lines(view, remaining[0])
            if n in known and known[n] not in sentence_lines
        ]
        remaining = [row for row in remaining if row not in sentence_lines]
    return sentence_lines


def _before(view: LineSet, rows: Sequence[ViewLine], anchor: Sequence[ViewLine]) -> list[ViewLine]:
    """Return the sentence directly before the anchor."""
    earlier = {row.number: row for row in rows if _at(row) < _at(anchor[0])}
    if not earlier:
        return []
    last = max(earlier.values(), key=_at)
    return [earlier[n] for n in _lines(view, last) if n in earlier]


def _words(row: ViewLine) -> int:
    return len(row.line.text.split())
