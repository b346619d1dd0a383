"""When something comes up first or last, and what stands before or after a moment."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from difflib import SequenceMatcher

from domain.search import Asks, Finding, Structure
from retrieval.closeness import coverage
from retrieval.heuristics.answer_sentence import whole
from retrieval.line_set import LineSet
from retrieval.query_context import QueryContext
from retrieval.signals.words import rarity
from retrieval.structural.ends import part_of
from retrieval.structural.rows import GAP_MS, rows_with
from retrieval.terms import content_words, terms
from retrieval.view_lines import ViewLine

ALIKE = 0.75
"""Words of recognised speech this much alike may be the same, beside one that is the same."""
LONG, MUCH_ALIKE = 5, 0.85
"""A word alone must be longer and more alike."""
MOST = 20_000
"""Of more lines those with a word like it are not looked for one by one."""
SHORT = 4
"""A shorter word is like too many others."""
COVERED = 0.6
"""Share of a moment's words, by rarity, that the line must hold that it is found at."""
NEXT = 2
"""Lines that are quoted after a moment, before a sentence goes on."""
FEW_WORDS = 8
"""One sentence of so many words is enough."""
NEAR_COSINE = 0.5
"""Where no line has the words, a line this close in meaning mentions the thing."""

Found = tuple[Finding, tuple[ViewLine, ...]]
Near = Callable[[str], Sequence[tuple[ViewLine, float]]]
"""Lines close in meaning to a text, with their cosines, best first."""


def first_or_last(context: QueryContext, asked: Structure, near: Near) -> Found | None:
    """The first or last line in which a thing comes up; None where it does not."""
    words = [_stem(word) for word in content_words(asked.subject)] or terms(asked.subject)
    for wanted in _by_manner(_candidates(context, asked.subject, words), asked.manner):
        if hits := _hits(context, wanted, asked, words):
            return _one(context, asked, hits)
    if alike := _misheard(context, words):
        return _one(context, asked, alike, exact=False)
    close = [row for row, cosine in near(asked.subject) if cosine >= NEAR_COSINE]
    close.sort(key=lambda row: (row.video, row.line.start_ms))
    fitting = [row for row in close if not asked.manner or _fits(row, asked.manner)]
    return _one(context, asked, fitting, exact=False) if fitting else None


def _stem(word: str) -> str:
    return next(iter(terms(word)), word)


def _fits(row: ViewLine, manner: str) -> bool:
    return row.spoken or row.described if manner == "said" else not row.spoken


def _by_manner(rows: Sequence[ViewLine], manner: str) -> list[list[ViewLine]]:
    """The lines to look through, those of the manner that is asked for first."""
    if not manner:
        return [list(rows)]
    fitting = [row for row in rows if _fits(row, manner)]
    return [fitting, [row for row in rows if not _fits(row, manner)]]


def _candidates(context: QueryContext, subject: str, words: Sequence[str]) -> list[ViewLine]:
    """The lines that may mention it: all where it is a person, else of clips with a word of it."""
    person = bool(context.people.named_in(subject))
    rows = context.rows if person else rows_with(context, words)
    return [row for row in rows if not row.names_somebody]


def _hits(
    context: QueryContext, rows: Sequence[ViewLine], asked: Structure, words: Sequence[str]
) -> list[ViewLine]:
    """The lines that mention a person by any tag, or a thing by its words."""
    people = context.people.named_in(asked.subject)
    tags = {tag for person in people for tag in person.tags}
    # Who says something is there, but is not mentioned.
    speaks = set() if asked.manner == "said" else tags
    return [
        row
        for place, row in enumerate(rows)
        if row.line.speaker in speaks
        or any(tag in row.line.text for tag in tags)
        or (words and _mentions(rows, place, words))
    ]


def _misheard(context: QueryContext, words: Sequence[str]) -> list[ViewLine]:
    """The lines of speech that have a word much like the only one; not of very many lines."""
    if len(words) != 1 or len(words[0]) < LONG or context.all_lines.line_count > MOST:
        return []
    spoken = (row for row in context.rows if row.spoken)
    return [row for row in spoken if _has(terms(row.line.text), words[0], MUCH_ALIKE)]


def _mentions(rows: Sequence[ViewLine], place: int, words: Sequence[str]) -> bool:
    """Whether a line has all words, one of them at least to the letter; or begins to say them."""
    row, own = rows[place], terms(rows[place].line.text)
    need = ALIKE if row.spoken and len(words) > 1 else 1.0
    if all(_has(own, word, need) for word in words):
        return any(word in own for word in words)
    return place + 1 < len(rows) and _runs_over(row, rows[place + 1], words)


def _runs_over(row: ViewLine, after: ViewLine, words: Sequence[str]) -> bool:
    """Whether speech ends with the first of the words and the next line begins with the rest."""
    own, later = terms(row.line.text), terms(after.line.text)
    both = row.spoken and after.spoken and row.line.speaker == after.line.speaker
    if not both or after.line.start_ms - row.line.end_ms > GAP_MS:
        return False
    cuts = range(1, len(words))
    return any(
        own[-cut:] == list(words[:cut]) and later[: len(words) - cut] == list(words[cut:])
        for cut in cuts
    )


def _has(own: Sequence[str], word: str, alike: float) -> bool:
    """Whether a word is among a line's, or one that is much like it."""
    if word in own or alike >= 1.0 or len(word) < SHORT:
        return word in own
    long = (other for other in own if len(other) >= SHORT)
    return any(SequenceMatcher(None, word, other).ratio() >= alike for other in long)


def _one(
    context: QueryContext, asked: Structure, hits: Sequence[ViewLine], *, exact: bool = True
) -> Found:
    row = hits[-1] if asked.asks is Asks.LAST else hits[0]
    part = part_of(context, [row])
    finding = Finding(asks=asked.asks, subject=asked.subject, manner=asked.manner, parts=(part,))
    fits = not asked.manner or _fits(row, asked.manner)
    return finding.model_copy(update={"exact": exact and fits}), (row,)


def beside(context: QueryContext, asked: Structure, near: Near) -> Found | None:
    """What comes right after or before a moment; None where the moment is not found."""
    anchor, exact = _anchor(context, asked, near)
    if not anchor:
        return None
    rows = [r for r in context.rows if _tells(r) and r.video == anchor[0].video]
    group = (_after if asked.asks is Asks.AFTER else _before)(context.all_lines, rows, anchor)
    if not group:
        return None
    parts = (part_of(context, group), part_of(context, anchor))
    finding = Finding(asks=asked.asks, subject=asked.subject, manner=asked.manner, parts=parts)
    return finding.model_copy(update={"exact": exact}), (*group, *anchor)


def _tells(row: ViewLine) -> bool:
    return row.spoken or row.described


def _anchor(context: QueryContext, asked: Structure, near: Near) -> tuple[list[ViewLine], bool]:
    """The sentence that is meant by the words, and whether it has most of them; empty: none."""
    view, words = context.all_lines, set(terms(asked.subject))
    known = {row.number: row for row in context.rows if _tells(row)}
    with_words = (row for row in rows_with(context, words) if row.number in known)
    weights = _rarities(view, words)

    def covered(row: ViewLine) -> float:
        return coverage((view.line(n)[1] for n in _lines(view, row)), weights)

    scored = ((covered(row), row) for row in with_words)
    share, best = max(scored, key=lambda one: one[0], default=(0.0, None))
    if best is not None and share >= COVERED:
        return _tightest(words, [known[n] for n in _lines(view, best) if n in known]), True
    close = (r for r, cosine in near(asked.subject) if cosine >= NEAR_COSINE and r.number in known)
    row = next(close, None)
    return [] if row is None else [known[n] for n in _lines(view, row) if n in known], False


def _lines(view: LineSet, row: ViewLine) -> tuple[int, ...]:
    return whole(view, row.number).lines if row.spoken else (row.number,)


def _rarities(lines: LineSet, words: Collection[str]) -> dict[str, float]:
    """How rare each word is among the cells."""
    cells = lines.cell_terms
    return {word: rarity(len(cells), sum(word in own for own in cells)) for word in sorted(words)}


def _tightest(words: set[str], lines: list[ViewLine]) -> list[ViewLine]:
    """The lines without those at either end that have none of the words."""
    has = [bool(words & set(terms(row.line.text))) for row in lines]
    if not any(has):
        return lines
    first, last = has.index(True), len(has) - has[::-1].index(True)
    return lines[first:last]


def _at(row: ViewLine) -> tuple[int, int]:
    return (row.line.start_ms, row.line.id)


def _after(view: LineSet, rows: Sequence[ViewLine], anchor: Sequence[ViewLine]) -> list[ViewLine]:
    """The next sentences, until they say something."""
    left = [row for row in rows if _at(row) > _at(anchor[-1])]
    known, found = {row.number: row for row in left}, list[ViewLine]()
    while left and len(found) < NEXT and sum(map(_words, found)) < FEW_WORDS:
        found += [known[n] for n in _lines(view, left[0]) if n in known and known[n] not in found]
        left = [row for row in left if row not in found]
    return found


def _before(view: LineSet, rows: Sequence[ViewLine], anchor: Sequence[ViewLine]) -> list[ViewLine]:
    """The sentence just before."""
    sooner = {row.number: row for row in rows if _at(row) < _at(anchor[0])}
    if not sooner:
        return []
    last = max(sooner.values(), key=_at)
    return [sooner[n] for n in _lines(view, last) if n in sooner]


def _words(row: ViewLine) -> int:
    return len(row.line.text.split())
