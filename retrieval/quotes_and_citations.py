"""Quotes, the sentences of memory that may answer an open question; and citations by ref.

What is said, read and seen is looked for side by side, since each kind drowns the others in one
ranking. A sentence is compared with the whole question by the reranker, and by vectors and words
with the question and with its words of content alone; it is quoted with the one after it, which
often holds the answer. Text on screen is split into its own lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from domain.asking import REF_KINDS, STRUCTURE, Citation, Evidence, Quote
from domain.errors import WeightsMissing
from domain.memories import SEPARATOR, MemorySource, MemoryView, Scope
from domain.moments import ResolvedRefs
from domain.people import TAG
from domain.time import TimeSpan
from domain.words import has_number
from models.ports import Reranker, TextEmbedder, embed_queries
from models.sentences import SentenceParser
from retrieval.chapters import Word
from retrieval.heuristics.questions import (
    NUMBERS,
    PEOPLE,
    Asks,
    asked_type,
    asks_for_kind,
    is_english,
    order_of,
)
from retrieval.keyframe_mode import NEAR_MS, describe, describe_kept
from retrieval.lines import Ints, LineSet
from retrieval.people_in_query import line_text, names_as_of, text_for_reranker, with_current_names
from retrieval.query_context import QueryContext
from retrieval.ranking import CELLS, line_scores
from retrieval.relevance import closeness, text_coverage
from retrieval.structure import (
    SPOKEN,
    Told,
    beside,
    chapters_told,
    complete_sentences,
    mention,
    tell,
)
from retrieval.terms import content_words
from store.database import Store
from store.queries.builds import cited_built
from store.queries.candidates import lines_of_clips
from store.queries.clips import clip_contents
from store.queries.keyframes import cited_kept
from store.queries.search import (
    StoredLine,
    cited_frames,
    cited_memories,
    cited_segments,
    videos_of_refs,
)

SAID, READ, SEEN = 20, 6, 4
"""Sentences said, texts read and lines on what is seen or heard that are compared."""
CHUNK = 160
"""Characters of text on screen that are one text at most, where a screen has more."""
LIKENESS = 5.0
"""Logits of a sentence as near as can be, with all words of the question."""
COVERED = 0.5
"""How much the words count beside the vector."""
ZERO = -2.5
"""Logits of a sentence that is as likely as not to answer: fitted on the working half of the
everyday questions, as are the two above."""
READING = 3.0
"""Logits more of text on screen, where the question asks for such."""
OTHER_TYPE = 6.0
"""Logits less of a sentence that names nothing of the type that is asked for."""
LEAST_READ = 3.4e-4
"""The least probability of a reranker that counts as it is, of 8 logits; the most likewise."""
ALIKE = 0.95
"""Quotes with this share of the best score are as near to a moment: the earliest is meant."""
OFFERED = 16
"""Quotes that a search offers, at most."""
PAUSE_MS = 8_000
"""A sentence after a longer pause is not quoted with the one before."""


class Quoted(NamedTuple):
    """A quote, and its lines or images as evidence."""

    quote: Quote
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class Candidate:
    """A text that may answer: ``rows`` are its lines, the first to cite.

    ``text`` is compared with the question, ``shown`` is quoted.
    """

    kind: str
    video: str
    rows: tuple[StoredLine, ...]
    text: str
    shown: str


LinesAround = Callable[[QueryContext, Sequence[int]], LineSet]
"""Reads the lines of the clips of these lines of a search, and of the clips beside them."""


@dataclass(frozen=True)
class QuoteSearch:
    """Finds quotes in a search of one view.

    ``text`` is the profile's encoder: parts of lines have no stored vectors. Without a ``reranker``
    likeness and words alone count; ``parser`` finds what type of thing is named, and ``word`` words
    chapters, if anything does.
    """

    text: TextEmbedder
    reranker: Reranker | None
    parser: SentenceParser
    around: LinesAround
    word: Word | None = None

    def quotes(
        self, context: QueryContext, cells: Ints | None = None, *, read: bool = False
    ) -> list[Quoted]:
        """Return what may answer the question of a search, best first, at most ``OFFERED``.

        ``cells``: those that are looked at, all if None; ``read``: it asks for text on screen.

        The score of each is in [0, 1], at least 0.5 if it is likely to answer.
        """
        candidates = _candidates(context, self.around, cells)
        if not candidates:
            return []
        question = context.question.text
        core = " ".join(content_words(question)) or question
        asked = embed_queries(self.text, [question, core])
        vectors = self.text.embed([candidate.text for candidate in candidates])
        cosines = (vectors @ asked.T).max(axis=1)
        covered = np.array([text_coverage([one.shown], context.idf) for one in candidates])
        if self.reranker is None:
            near = [context.cosine_scale.nearness(float(cosine)) for cosine in cosines]
            close = np.array([closeness(a, b) for a, b in zip(near, covered, strict=True)])
            scores = np.minimum(1.0, 0.5 * close / context.chance)
        else:
            reread = self.reranker.scores(question, [candidate.text for candidate in candidates])
            safe = np.clip(reread.astype(np.float64), LEAST_READ, 1 - LEAST_READ)
            sums = np.log(safe / (1 - safe)) + LIKENESS * (cosines + COVERED * covered)
            sums += READING * np.array([read and one.kind == "read" for one in candidates])
            sums -= OTHER_TYPE * self._of_other_type(question, candidates)
            scores = 1 / (1 + np.exp(-(sums - ZERO) / 2))
        order = np.argsort(-scores, kind="stable")[:OFFERED]
        return [_quoted(context, candidates[n], float(scores[n])) for n in order]

    def _of_other_type(self, question: str, candidates: Sequence[Candidate]) -> NDArray[np.bool_]:
        """Mark the candidates that name nothing of the type that a question asks for, (N,)."""
        wanted = asked_type(question)
        if not wanted or not is_english(question):
            return np.zeros(len(candidates), dtype=np.bool_)
        shown = [candidate.shown for candidate in candidates]
        try:
            entities = self.parser.named_entities(shown)
        except WeightsMissing:
            return np.zeros(len(candidates), dtype=np.bool_)
        return np.array(
            [
                not any(one.label in wanted for one in found)
                and not (wanted >= NUMBERS and has_number(text))
                and not (wanted >= PEOPLE and TAG.search(text))
                for text, found in zip(shown, entities, strict=True)
            ]
        )

    def structure(
        self, context: QueryContext, asks: Collection[Asks], about: Callable[[str], QueryContext]
    ) -> list[Quoted]:
        """Return sentences on the structure of the only video in view, of what is asked for.

        Args:
            context: The search.
            asks: What the question asks of structure.
            about: Prepares a search of the same view for another text.
        """
        kinds = {*asks, Asks.THINGS} if asks_for_kind(context.question.text) else set(asks)
        told: list[Told | None] = [one for kind in sorted(kinds) if (one := tell(context, kind))]
        if topics := {Asks.ABOUT, Asks.OUTLINE} & set(asks):
            summary = Asks.ABOUT in topics
            told += [
                chapters_told(context, self.parser, self.text, summary=summary, word=self.word)
            ]
        order = None if told else order_of(context.question.text)
        if order and order.place in ("first", "last"):
            last = order.place == "last"
            told = [mention(context, order.subject, last=last, said=order.said)]
        elif order:
            near = self.quotes(about(order.subject))
            said = [o.quote for o in near if o.quote.kind == "said" and o.quote.score >= 0.5]
            best = [one for one in said if one.score >= ALIKE * said[0].score]
            first = min(best, key=lambda one: one.span.start_ms, default=None)
            ids = [] if first is None else [int(first.refs[0][1:])]
            numbers = context.all_lines.lines_with(ids).tolist()
            told = [beside(context, n, before=order.place == "before") for n in numbers]
        return [
            quoted(
                one.text,
                [context.row_evidence(r.video, r.line, one.sure) for r in one.rows],
                STRUCTURE,
                one.sure,
            )
            for one in told
            if one
        ]


def quoted(text: str, evidence: Sequence[Evidence], kind: str, score: float) -> Quoted:
    """Return a quote of pieces of evidence, at least one, the first of which is the one to cite."""
    start = min(piece.span.start_ms for piece in evidence)
    quote = Quote(
        text=text,
        refs=tuple(piece.ref for piece in evidence),
        video=evidence[0].video,
        span=TimeSpan.of(start, max(piece.span.end_ms for piece in evidence)),
        score=score,
        kind=kind,
    )
    return Quoted(quote, tuple(evidence))


def lines_around(store: Store, context: QueryContext, numbers: Sequence[int]) -> LineSet:
    """Return the lines of the clips of these lines and of their neighbours."""
    lines = context.lines
    if context.small:
        return lines
    places = {(int(lines.arrays.video[n]), int(lines.arrays.clip[n])) for n in numbers}
    clips = {
        (video, beside) for video, clip in places for beside in range(max(0, clip - 1), clip + 2)
    }
    size = lines.arrays.vectors.shape[1]
    arrays = store.run_read_only(
        lambda connection: lines_of_clips(connection, lines.scopes, sorted(clips), size)
    )
    return LineSet(lines.scopes, arrays, lines.read)


def lines_beside(
    store: Store, context: QueryContext, number: int, score: float
) -> tuple[Evidence, ...]:
    """Return what was remembered right before and right after a line, with this score."""
    lines = lines_around(store, context, [number])
    (place,) = lines.lines_with([int(context.lines.arrays.id[number])]).tolist()
    beside = [lines.line(n) for n in (place - 1, place + 1) if 0 <= n < lines.line_count]
    video = context.lines.line(number)[0]
    return tuple(context.row_evidence(video, row, score) for of, row in beside if of == video)


def _candidates(
    context: QueryContext, around: LinesAround, looked_at: Ints | None
) -> list[Candidate]:
    """Return the texts to compare, those of each kind by the ranking of the search."""
    relevance = context.relevance
    if relevance is None:
        return []
    cells = np.argsort(-relevance.cells, kind="stable")
    cells = (cells if looked_at is None else cells[np.isin(cells, looked_at)])[:CELLS]
    numbers = context.lines.lines_of(cells.tolist())
    scores = line_scores(context.candidates, relevance, numbers).max(axis=0)
    best: dict[str, list[int]] = {"said": [], "read": [], "seen": []}
    limits = {"said": SAID, "read": READ, "seen": SEEN}
    context.lines.read_lines(numbers.tolist())
    for number in numbers[np.argsort(-scores, kind="stable")].tolist():
        kind = _kind(context.lines.line(number)[1])
        if len(best[kind]) < limits[kind]:
            best[kind].append(number)
    chosen = [number for of_kind in best.values() for number in of_kind]
    lines = around(context, chosen)
    ids = [int(context.lines.arrays.id[number]) for number in chosen]
    places = {int(identifier): n for n, identifier in enumerate(lines.arrays.id)}
    found: dict[tuple[str, int, str], Candidate] = {}
    for identifier in ids:
        for one in _texts(context, lines, places[identifier]):
            found.setdefault((one.kind, min(row.id for row in one.rows), one.text), one)
    return list(found.values())


def _kind(row: StoredLine) -> str:
    if row.source in SPOKEN:
        return "said"
    return "read" if row.source == MemorySource.READ and row.kind == "episodic" else "seen"


def _texts(context: QueryContext, lines: LineSet, number: int) -> list[Candidate]:
    """Return the texts of a line: its sentence, its parts on screen, or itself."""
    video, row = lines.line(number)
    names, kind = context.people.names(video), _kind(row)
    if kind == "seen":
        return [
            Candidate(kind, video, (row,), text_for_reranker(row, names), line_text(row, names))
        ]
    if kind == "read":
        chunks: list[str] = []
        for part in row.text.split(SEPARATOR):
            joined = f"{chunks[-1]}{SEPARATOR}{part}" if chunks else part
            if chunks and len(joined) <= CHUNK:
                chunks[-1] = joined
            else:
                chunks.append(part)
        parts = [row._replace(text=part) for part in chunks]
        return [Candidate(kind, video, (row,), one.text, line_text(one, names)) for one in parts]
    sentence = complete_sentences(lines, number)
    after = sentence[-1] + 1
    while after < lines.line_count and lines.line(after)[1].source != row.source:
        after += 1
    rows = [lines.line(n)[1] for n in sentence]
    more: list[StoredLine] = []
    if after < lines.line_count and lines.line(after)[0] == video:
        numbers = [n for n in complete_sentences(lines, after) if n > sentence[-1]]
        following = [lines.line(n)[1] for n in numbers]
        more = following if following[0].start_ms - rows[-1].end_ms <= PAUSE_MS else []
    said = row._replace(text=" ".join(one.text.strip() for one in rows), speaker=rows[0].speaker)
    # What somebody else says after it is told apart, as an answer to a question is.
    shown = [line_text(said, names)]
    if more:
        text = " ".join(one.text.strip() for one in more)
        same = more[0].speaker == rows[0].speaker
        shown.append(text if same else line_text(more[0]._replace(text=text), names))
    order = sorted(rows, key=lambda one: one.id != row.id)
    return [
        Candidate(kind, video, (*order, *more), text_for_reranker(said, names), " ".join(shown))
    ]


def _quoted(context: QueryContext, candidate: Candidate, score: float) -> Quoted:
    rows = [context.row_evidence(candidate.video, row, score) for row in candidate.rows]
    return quoted(candidate.shown, rows, candidate.kind, score)


Key = tuple[str, int]
"""Kind, one of ``REF_KINDS``, and row id."""

_REF = re.compile(rf"\[?([{REF_KINDS}])([1-9]\d{{0,17}})\]?")


def cite(session: Session, view: MemoryView, refs: Iterable[str]) -> ResolvedRefs:
    """Look refs up as of ``view``; repeated ones count once, brackets are allowed.

    Returns:
        Citations in the order of the refs, and the refs without a row in view.
    """
    wanted = {ref: _key(ref) for ref in refs}
    keys = {key for key in wanted.values() if key is not None}
    ids = {kind: [number for k, number in keys if k == kind] for kind in REF_KINDS}
    videos = videos_of_refs(session, ids)
    known: dict[Key | None, Citation] = {}
    for scope in (scope for scope in view.scopes if scope.video in videos):
        for citation in _in_scope(session, scope, ids):
            known[_key(citation.ref)] = citation
    citations = [known[key] for key in wanted.values() if key in known]
    unknown = tuple(ref for ref, key in wanted.items() if key not in known)
    return ResolvedRefs(citations=tuple(dict.fromkeys(citations)), unknown=unknown)


def _key(ref: str) -> Key | None:
    match = _REF.fullmatch(ref.strip())
    return (match[1], int(match[2])) if match else None


def _in_scope(
    session: Session, scope: Scope, ids: Mapping[str, Collection[int]]
) -> Iterator[Citation]:
    names = names_as_of(session, scope)
    for line in cited_memories(session, scope, ids["m"]):
        span = TimeSpan.of(line.start_ms, max(line.start_ms, line.end_ms))
        yield _citation(f"m{line.id}", scope, span, line_text(line, names), line.clip)
    for segment, label, summary, start, end in cited_segments(session, scope, ids["s"]):
        text = with_current_names(f"{label}: {summary}", names)
        yield _citation(f"s{segment}", scope, TimeSpan.of(start, end), text, None)
    shown = cited_frames(session, scope, ids["k"])
    contents = clip_contents(session, scope, {frame.clip for frame in shown})
    for frame in shown:
        span = TimeSpan.of(frame.time_ms, frame.time_ms + NEAR_MS)
        text = describe(contents, frame.time_ms, names, frame.description)
        yield _citation(f"k{frame.id}", scope, span, text, frame.clip)
    kept = cited_kept(session, scope, ids["f"])
    contents = clip_contents(session, scope, {one.clip for one in kept})
    for one in kept:
        span = TimeSpan.of(one.time_ms, one.time_ms + NEAR_MS)
        text = describe_kept(contents, one.time_ms, names)
        yield _citation(f"f{one.id}", scope, span, text, one.clip)
    for ref, span, text, clip in cited_built(session, scope, ids["n"], ids["e"], ids["r"]):
        yield _citation(ref, scope, span, with_current_names(text, names), clip)


def _citation(ref: str, scope: Scope, span: TimeSpan, text: str, clip: int | None) -> Citation:
    return Citation(ref=ref, video=scope.video, span=span, text=text, clip=clip)
