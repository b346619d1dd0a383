"""Chapters of a video: cut where its topic changes, with a name and a sentence or two each; pure.

They are made of what is said and described, and of text on screen where nothing is said.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from domain.errors import WeightsMissing
from domain.memories import BACKGROUND_SOURCES, Line, MemorySource
from domain.sentences import ends_sentence, split_sentences
from domain.time import TimeSpan, format_clock
from domain.word_lists import load_words
from models.sentences import SentenceParser, name_of
from people.identities import normalise_rows
from retrieval.english import WORDS
from retrieval.heuristics.questions import ENGLISH, detect_language, function_words
from retrieval.lines import SPOKEN
from retrieval.terms import stem, terms

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

Vectors = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Vectors]
"""Returns the unit vector of each text, (N, D)."""
Word = Callable[[Sequence[str]], tuple[str, str] | None]
"""Words the lines of a chapter: its name, and a sentence or two; None where it cannot."""

LEAST_MS, MOST_MS = 45_000, 300_000
"""The least of a chapter, and the most of one that can be cut, unless twice the usual is more."""
CONTEXT_MS = 60_000
"""So long before an end after which more follows there is no border: too little is known."""
MOST_CHAPTERS = 20
WORDED = 12
"""Chapters that are worded at most, the longest: each is a call of a language model."""
MOST_PLACES = 1_000
"""Of more places for a border only some are looked at: memory and time grow with their square."""
BORDER, UNUSUAL = 0.25, 0.16
"""What a border costs, in parts of what the Bayesian information criterion asks of it, and what a
chapter e times as long, or as short, as is usual, in lines of a usual one; both by
the benchmark of chapters."""
ROOT = 1.6
"""Chapters that are usual in a minute; in four minutes twice as many."""
FULL_WORDS, LEAST_TERMS = 8, 6
"""Words of a line from which on it counts in full where a border is looked for, and terms of a
sentence that a summary may have."""
ONCE = 0.4
"""What a phrase counts that a chapter has once."""
RANKED = 16
"""Phrases that are compared with what the chapter is about."""
SAME, WEAK = 0.8, 0.7
"""Cosine from which on two sentences say the same, and how close to what a chapter is about, in
parts of the first, a second sentence has to be."""

_WORD = re.compile(r"[^\W\d_][\w'’-]*|[^\w\s]")
_NOUNS, _IN_NAMES = ("NOUN", "PROPN"), ("NOUN", "PROPN", "ADJ", "PART", "PUNCT")
_EMPTY = WORDS["no_entities"] | WORDS["groups"] | WORDS["vague"]


class TopicLine(NamedTuple):
    """A line of a video: words said, a caption, text on screen."""

    span: TimeSpan
    text: str
    source: str


class Chapter(NamedTuple):
    """A part of a video: its name, and the numbers of the lines that begin in it.

    ``summary`` has at most two whole sentences, in order; ``quoted`` the number of each one's line.
    ``worded``: it is one text in other words, of what the quoted line is most about.
    """

    span: TimeSpan
    name: str
    lines: tuple[int, ...]
    summary: tuple[str, ...]
    quoted: tuple[int, ...]
    worded: bool = False


class _Sentence(NamedTuple):
    """A sentence with the number of its line, its phrases as (key, written), and its rank.

    The rank is 2 for one that is understood by itself, 1 for another whole one, else 0.
    """

    line: int
    text: str
    phrases: tuple[tuple[str, str], ...]
    rank: int


def chapters(
    span: TimeSpan,
    lines: Sequence[TopicLine | Line],
    vectors: Vectors,
    parser: SentenceParser,
    embed: Embed,
    *,
    ends: Sequence[int] | None = None,
    ended: bool = True,
    word: Word | None = None,
) -> list[Chapter]:
    """Return the chapters of a video, or of a stretch of it: in order, without gaps.

    Args:
        span: the video or the stretch.
        lines: those that begin in it, in order of time.
        vectors: of the lines, (N, D).
        parser: parses sentences; of a language without a pipeline only words are read.
        embed: the encoder of the vectors.
        ends: where chapters end, if that is known; else they are cut where the topic changes.
        ended: nothing follows the span; else what follows the last change of topic is left out.
        word: names a chapter in place of a phrase of its own, and tells it in other words.
    """
    told = telling(lines)
    telling_lines = [lines[number] for number in told]
    if ends is None:
        ends = chapter_ends(span, telling_lines, vectors[told], ended=ended)
    read = [one._replace(line=told[one.line]) for one in _read(telling_lines, parser)]
    spans = [TimeSpan.of(start, end) for start, end in pairwise([span.start_ms, *ends])]
    parts = [{n for n in told if begins_in(lines[n].span, part)} for part in spans]
    asides = embed(sorted(load_words("asides")))
    whole = normalise_rows(vectors[told].sum(axis=0))[0]
    about = {n for n in told if float((asides @ vectors[n]).max()) < float(vectors[n] @ whole)}
    names: list[str] = []
    found = []
    for part, numbers in zip(spans, parts, strict=True):
        centre = normalise_rows(vectors[sorted(numbers)].sum(axis=0))[0]
        own = [one for one in read if one.line in numbers]
        others = [one for one in read if one.line not in numbers]
        topical = [one for one in own if one.line in about]
        names.append(_name(topical or own, others, centre, embed, names))
        close = {one: round(float(vectors[one.line] @ centre), 6) for one in topical if one.rank}
        ranked = sorted(close, key=lambda one: (-one.rank, -close[one]))
        chosen = ranked[:1]
        for one in ranked[1:]:
            first = chosen[0]
            weak = one.rank < 2 or close[one] < WEAK * close[first]
            if len(chosen) == 1 and not weak and vectors[one.line] @ vectors[first.line] < SAME:
                chosen.append(one)
        chosen.sort(key=lambda one: one.line)
        found.append(
            Chapter(
                span=part,
                name=names[-1] or f"Nothing said at {format_clock(part.start_ms)}",
                lines=tuple(n for n, line in enumerate(lines) if begins_in(line.span, part)),
                summary=tuple(one.text for one in chosen),
                quoted=tuple(one.line for one in chosen),
            )
        )
    longest = sorted(found, key=lambda chapter: chapter.span.length_ms)[-WORDED:]
    for place, chapter in enumerate(found if word else ()):
        texts = [lines[n].text for n in told if n in chapter.lines]
        if word and texts and chapter in longest and (worded := word(texts)):
            quoted = (chapter.quoted or chapter.lines)[:1]
            found[place] = Chapter(
                chapter.span, worded[0], chapter.lines, worded[1:], quoted, worded=True
            )
    return found


def begins_in(inner: TimeSpan, outer: TimeSpan) -> bool:
    """Check whether a span begins in another."""
    return outer.start_ms <= inner.start_ms < outer.end_ms


def telling(lines: Sequence[TopicLine | Line]) -> list[int]:
    """Return the numbers of the lines that tell what a video is about."""
    spoken = [line.span for line in lines if line.source in SPOKEN]
    begins = np.asarray([one.start_ms for one in spoken])
    until = np.asarray([one.end_ms for one in spoken])
    # Speech that goes on in the next clip is there once more, as a whole.
    last = {(line.source, line.span.start_ms): number for number, line in enumerate(lines)}
    return [
        number
        for number, line in enumerate(lines)
        if line.source not in BACKGROUND_SOURCES
        and (line.source not in SPOKEN or last[line.source, line.span.start_ms] == number)
        and not (
            line.source == MemorySource.READ
            and np.any((begins < line.span.end_ms) & (line.span.start_ms < until))
        )
    ]


def chapter_ends(
    span: TimeSpan, lines: Sequence[TopicLine | Line], vectors: Vectors, *, ended: bool = True
) -> list[int]:
    """Return where chapters end: so that the lines of each are most alike.

    Args:
        lines: those that begin in it, in order of time.
        vectors: (N, D) unit rows, of the lines.
        ended: nothing follows it; else the last part is left out, unless it is the only one.

    Returns:
        Times in ascending order, at least one; the last is the span's end if ``ended``.
    """
    # By dynamic programming over the gaps between lines. A part has its cohesion: by how much the
    # squared distances of its lines to their mean are smaller than to the mean of all. It costs a
    # share of what the Bayesian information criterion asks of a change of the mean, and more the
    # further its length is from the usual one, which grows with the root of the time so far.
    starts = [line.span.start_ms for line in lines]
    minutes = max(1.0, span.end_ms / 60_000)
    usual = max(LEAST_MS, span.end_ms / min(MOST_CHAPTERS, ROOT * minutes**0.5))
    least = max(LEAST_MS, usual / 2)
    first, last = span.start_ms + least, span.end_ms - (least if ended else CONTEXT_MS)
    gaps = [
        line
        for line in range(1, len(starts))
        if starts[line - 1] < starts[line] and first <= starts[line] <= last
    ]
    gaps = gaps[:: len(gaps) // (MOST_PLACES + 1) + 1]
    if not gaps:
        return [span.end_ms]
    times = np.asarray([span.start_ms, *(starts[line] for line in gaps), span.end_ms])
    places = np.asarray([0, *gaps, len(starts)])
    weights = np.clip([len(line.text.split()) / FULL_WORDS for line in lines], 0.1, 1.0)
    about_mean = vectors - np.average(vectors, axis=0, weights=weights)
    rows = normalise_rows(about_mean) * weights[:, None]
    sums = np.vstack([np.zeros(rows.shape[1]), np.cumsum(rows, axis=0)])[places]
    counts = np.concatenate([[0.0], np.cumsum(weights)])[places]
    # Not a matrix product: the threads of BLAS would spin for longer than this takes.
    products = np.vecdot(sums[:, None], sums)
    squares = np.diag(products)
    within = np.maximum(1e-9, counts[None] - counts[:, None])
    # Rounded, so that equal texts are cut alike on every processor.
    cohesion = np.round((squares[:, None] + squares - 2 * products) / within, 6)
    total = max(2.0, float(counts[-1]))
    spread = (total - cohesion[0, -1]) / (total - 1)
    lengths = times[None] - times[:, None]
    odd = np.log(np.maximum(1, lengths) / usual) ** 2
    scores = cohesion - spread * (
        BORDER * math.log(total) + UNUSUAL * total * usual / span.length_ms * odd
    )
    scores -= total * np.maximum(0, lengths - max(MOST_MS, 2 * usual))
    scores[lengths < least] = -np.inf
    best = np.full(len(scores), -np.inf)
    best[0] = 0
    before = np.zeros(len(scores), dtype=int)
    for place in range(1, len(scores)):
        totals = best[:place] + scores[:place, place]
        before[place] = np.argmax(totals)
        best[place] = totals[before[place]]
    ends = [len(scores) - 1]
    while before[ends[-1]]:
        ends.append(int(before[ends[-1]]))
    found = [int(times[end]) for end in reversed(ends)]
    return found if ended or len(found) == 1 else found[:-1]


def _read(lines: Sequence[TopicLine | Line], parser: SentenceParser) -> list[_Sentence]:
    """Read the sentences of lines by the pipeline of their language, else by their words."""
    said = [
        (number, text.strip())
        for number, line in enumerate(lines)
        for text in (split_sentences(line.text) if line.source in SPOKEN else [line.text])
    ]
    texts = [text for _, text in said]
    broken_off = [after[:1].islower() for after in [*texts, ""][1:]]
    whole = [
        len(terms(text, english=False)) >= LEAST_TERMS
        and ends_sentence(text)
        and not (text[0].islower() or " / " in text or "?" in text[-3:])
        for text in texts
    ]
    language = detect_language(" ".join(texts))
    code = language.codes[0] if language else ENGLISH
    if code in parser.languages:
        try:
            with parser.parsed(texts, language=code) as documents:
                found = []
                for place, document in enumerate(documents):
                    number, text = said[place]
                    # Much of what is read on screen is not words: a logo, a sign at an angle.
                    shown = lines[number].source == MemorySource.READ and code == ENGLISH
                    known = not shown or parser.knows_most(document)
                    phrases = tuple(dict.fromkeys(noun_phrases(document))) if known else ()
                    alone = not broken_off[place] and _stands_alone(document)
                    rank = (1 + alone) * (whole[place] and known)
                    found.append(_Sentence(number, text, phrases, rank))
                return found
        except (WeightsMissing, NotImplementedError):  # Of some languages spaCy has no phrases.
            pass
    stop = load_words("stop") | function_words(" ".join(texts))
    return [
        _Sentence(number, text, tuple(dict.fromkeys(_runs(text, stop))), 2 * full)
        for (number, text), full in zip(said, whole, strict=True)
    ]


def _stands_alone(document: Doc) -> bool:
    """Check whether a sentence has a subject, and nothing before its verb that needs another."""
    subjects = [token for token in document if token.dep_ in ("nsubj", "nsubjpass", "expl")]
    verbs = [token.head.i for token in subjects if token.head.dep_ == "ROOT"]
    before = document[: verbs[0]] if verbs else document
    needing = (token for token in before if token.lower_ in WORDS["needs_before"])
    opening = document[0].lower_ in WORDS["goes_on"] or document[0].pos_ in ("CCONJ", "INTJ")
    return bool(verbs) and not opening and not any(t.pos_ in ("DET", "PRON") for t in needing)


def noun_phrases(document: Doc) -> Iterator[tuple[str, str]]:
    """Yield noun phrases, and what they end with: "dark energy" and "energy", with "of" or not."""
    chunks: dict[int, list[Token]] = {}
    for chunk in document.noun_chunks:
        words, last = [*chunk], chunk[-1]
        if last.pos_ in _NOUNS and last.lemma_.lower() not in _EMPTY and len(last) > 1:
            other = [n for n, word in enumerate(words) if word.pos_ not in _IN_NAMES]
            words = words[max(other, default=-1) + 1 :]
            while words[0].pos_ in ("PART", "PUNCT") or words[0].lemma_.lower() in WORDS["vague"]:
                words = words[1:]
            chunks[chunk.root.i] = words
    for root, words in chunks.items():
        for start in range(len(words)):
            yield _phrase(words[start:], words[start:])
            for of in document[root + 1 : root + 2]:
                for after in of.children if of.lower_ == "of" else ():
                    if rest := chunks.get(after.i):
                        written = document[words[start].i : rest[-1].i + 1]
                        yield _phrase([*words[start:], of, *rest], written)


def _phrase(words: Iterable[Token], written: Iterable[Token]) -> tuple[str, str]:
    key = " ".join((name_of(word) or word.lemma_).lower() for word in words)
    return key, "".join((name_of(one) or one.text) + one.whitespace_ for one in written).strip()


def _runs(text: str, stop: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield runs of one to three words that are not stop words."""
    words = _WORD.findall(text)
    dull = [len(w) < 2 or w.lower() in stop or stem(w.lower()) in stop for w in words]
    for start, size in product(range(len(words)), (1, 2, 3)):
        if start + size <= len(words) and not any(dull[start : start + size]):
            run = " ".join(words[start : start + size])
            yield run.lower(), run


def _name(
    own: Sequence[_Sentence],
    others: Sequence[_Sentence],
    centre: NDArray[np.float64],
    embed: Embed,
    taken: Sequence[str],
) -> str:
    """Return the phrase that sentences have more often than others, and that is most about them."""
    written: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in {one.text: one for one in own}.values():
        for key, form in one.phrases:
            written[key][form] += 2 if one.rank else 1
    elsewhere = Counter(key for one in others for key, _ in one.phrases)
    scores = {}
    for key, forms in written.items():
        form = max(forms, key=lambda form: (not form.isupper(), written[key][form]))
        name = form[:1].upper() + form[1:]
        count = forms.total() / 2
        special = math.sqrt(count / (count + elsewhere[key]))
        if name not in taken:
            scores[name] = (
                (count**0.75 if count > 1 else ONCE * count) * special * min(3, len(terms(key)))
            )
    best = sorted(scores, key=lambda name: -scores[name])[:RANKED]
    if not best:
        return ""
    close = np.maximum(0.02, embed(best) @ centre)
    return max(zip(best, close, strict=True), key=lambda p: round(scores[p[0]] * p[1], 6))[0]


# Summaries made of sentences of a text, chosen for the rare words that they cover.
#
# Rarity is counted over what was seen by then only, so that a summary is the same whether it is
# written while watching or later. Pure.

BREAK = "\n"
"""Between the sentences of a local caption, so that they can be told apart again."""

FEW_TERMS = 4
"""Sentences with fewer terms have no advantage by being short."""


@dataclass
class DocumentCounts:
    """In how many of the finest captions seen so far each term stands."""

    documents: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, caption: str) -> None:
        self.documents += 1
        self.counts.update(set(terms(caption)))

    def rarity(self, term: str) -> float:
        """Return the weight of a term: the fewer captions have it, the higher, above 0."""
        return math.log1p(self.documents / max(1, self.counts[term]))


def caption_sentences(caption: str) -> list[str]:
    """Return the sentences of a caption: of a local one its lines, else by full stops."""
    parts = [part for part in caption.split(BREAK) if part.strip()]
    if len(parts) > 1:
        return [part.strip() for part in parts]
    return [sentence.strip() for sentence in split_sentences(caption)]


def coarser_caption(finer: Sequence[str], counts: DocumentCounts, most: int) -> str:
    """Return the sentences that cover most of the rare words of finer captions.

    Args:
        finer: captions in order of time.
        counts: of the finest captions up to the window's end.

    Returns:
        Sentences in their order; empty where there are none.
    """
    sentences = list(dict.fromkeys(s for caption in finer for s in caption_sentences(caption)))
    words = [frozenset(terms(sentence)) for sentence in sentences]
    within = Counter(term for caption in finer for term in set(terms(caption)))
    # Choose sets of words, each time the one that adds most, until nothing is added.
    weights = {term: counts.rarity(term) * count for term, count in within.items()}
    chosen: set[int] = set()
    covered: frozenset[str] = frozenset()
    while len(chosen) < most:
        gains = list[float]()
        for terms_of_sentence in words:
            # Summed in order: floats depend on it, and the order of sets differs between processes.
            added = sum(weights[term] for term in sorted(terms_of_sentence - covered))
            gains.append(round(added / math.sqrt(max(FEW_TERMS, len(terms_of_sentence))), 9))
        best = max(range(len(gains)), key=lambda number: (gains[number], -number), default=0)
        if not gains or gains[best] <= 0:
            break
        chosen.add(best)
        covered |= words[best]
    return BREAK.join(sentences[number] for number in sorted(chosen))
