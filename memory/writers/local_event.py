"""The event writer without a language model.

Segments begin where the topic shifts; labels are phrases that recur in them, summaries sentences of
their lines. ``before`` and ``overlap`` follow from the times; a causal edge is added only where
speech states one, and quotes it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from domain.built import RULES
from domain.memories import BACKGROUND_SOURCES, MemorySource, OpenSegment, Relation
from domain.sentences import split_sentences
from domain.settings import MemorySettings
from domain.time import TimeSpan, format_clock
from memory.patches import WrittenEdge, WrittenPatch, WrittenSegment
from memory.writers.port import EventWindow, WindowLine
from memory.writers.segment_labels import (
    CutLimits,
    Salience,
    choose_cuts,
    content_words,
    depth_scores,
    split_at_cuts,
    summarise,
    summary_size,
)

# Finds causal relations that speech states, by causal connectives; pure.


@dataclass(frozen=True)
class StatedCause:
    """A stated relation: ``source`` causes (enables, requires, prevents) ``target``.

    An empty source stands for the preceding statement, as in "Therefore we left".
    """

    relation: Relation
    source: str
    target: str
    quote: str


_CLAUSE = re.compile(r"[^.!?]+")
_BETWEEN_WORDS = r"(?<=[^.!?]){}(?=[^.!?])"
"""A connective stands between words of one clause."""
_FORWARD = (
    (Relation.CAUSES, r"\b(?:leads? to|led to|results? in|resulted in|causes?|caused)\b"),
    (Relation.PREVENTS, r"\b(?:prevents?|prevented|keeps? us from|kept us from)\b"),
    (Relation.ENABLES, r"\b(?:enables?|enabled|makes? it possible to|allowed us to)\b"),
    (Relation.CAUSES, r" (?:so that|and therefore|and as a result|which is why)\b"),
)
_FORWARD_PATTERNS = tuple(
    (relation, re.compile(_BETWEEN_WORDS.format(words), re.I)) for relation, words in _FORWARD
)
_BACKWARD = (
    (Relation.CAUSES, r"\b(?:because of|because|due to|as a result of|caused by)\b"),
    (Relation.REQUIRES, r"\b(?:requires?|required|depends? on|depended on)\b"),
)
_BACKWARD_PATTERNS = tuple(
    (relation, re.compile(_BETWEEN_WORDS.format(words), re.I)) for relation, words in _BACKWARD
)
_CONSEQUENCE = re.compile(
    r"^(?:and |so )?(?:therefore|as a result|that['’]s why|that is why|because of (?:that|this)|"
    r"for that reason|consequently)\b,? (?P<b>[^.!?]+)",
    re.IGNORECASE,
)


def find_stated_causes(text: str) -> list[StatedCause]:
    """Return the relations that a line states, at most one per sentence."""
    causes = (_cause_in_sentence(sentence) for sentence in split_sentences(text))
    return [cause for cause in causes if cause is not None]


def _cause_in_sentence(sentence: str) -> StatedCause | None:
    follows = _CONSEQUENCE.search(sentence)
    if follows:
        return StatedCause(Relation.CAUSES, "", follows["b"].strip(), sentence)
    if sentence.rstrip().endswith("?"):
        return None  # A question does not state.
    for forward, patterns in ((False, _BACKWARD_PATTERNS), (True, _FORWARD_PATTERNS)):
        for relation, pattern in patterns:
            sides = _split_at_connective(pattern, sentence)
            if sides is not None:
                # "A requires B" keeps its order; "A because B" says that B causes A.
                source, target = sides
                if not forward and relation != Relation.REQUIRES:
                    source, target = target, source
                if not content_words(source) or not content_words(target):
                    return None  # "The cause is unknown" names no cause.
                return StatedCause(relation, source, target, sentence)
    return None


def _split_at_connective(connective: re.Pattern[str], sentence: str) -> tuple[str, str] | None:
    """Return both sides of the last connective of the first clause that has one."""
    for clause in _CLAUSE.finditer(sentence):
        start, end = clause.span()
        if matches := [*connective.finditer(sentence, start, end)]:
            match = matches[-1]
            return sentence[start : match.start()].strip(), sentence[match.end() : end].strip()
    return None


MAX_PAUSE_MS = 120_000
"""Clips further apart than this are of different topics."""

MAX_CLIPS = 10
"""Most clips of an extended segment; longer topics are split."""

MIN_LINES = 4
"""Fewest lines of a topic."""

LINES_A_TOPIC = 10
"""About how many lines a topic has, where the limits of a patch allow it."""

MIN_SHARED_WORDS = 2
"""Fewest content words that a clause must share with a segment to refer to it."""


@dataclass(frozen=True)
class _Topic:
    """A proposed segment; ``extends`` is the open segment that it extends."""

    clips: tuple[int, ...]
    lines: tuple[WindowLine, ...]
    span: TimeSpan
    extends: OpenSegment | None = None
    label: str = ""


class LocalEventWriter:
    """Proposes patches from the lines of a window; see the module."""

    name = RULES

    def __init__(self, settings: MemorySettings) -> None:
        self._settings = settings

    def patch(self, window: EventWindow) -> WrittenPatch:
        """Topics of the window, in order of time, and what joins them."""
        salience = Salience([*window.before, *window.lines])
        labels = {segment.label for segment in [*window.previous, *window.related]}
        topics = []
        for topic in self._find_topics(window):
            own_label = topic.extends.label if topic.extends else None
            label = salience.label(topic.lines, self._settings.label_words)
            label = label or f"Nothing said at {format_clock(topic.span.start_ms)}"
            if label in labels - {own_label}:
                label = with_time(label, topic.span, self._settings.label_words)
            labels.add(label)
            topics.append(_Topic(topic.clips, topic.lines, topic.span, topic.extends, label))
        edges = [*_temporal_edges(window, topics), *_causal_edges(window, topics)]
        # The first of edges with the same ends and relation.
        unique = {(e.source, e.target, e.relation): e for e in reversed(edges)}
        return WrittenPatch(segments=tuple(map(_draft, topics)), edges=tuple(unique.values())[::-1])

    def repair(
        self, window: EventWindow, patch: WrittenPatch, complaints: Sequence[str]
    ) -> WrittenPatch:
        """Return the same patch with the time in the labels that are taken."""
        wrong_labels = {
            d.label for d in patch.segments if any(repr(d.label) in c for c in complaints)
        }
        max_words = self._settings.label_words
        new = {
            draft.label: with_time(draft.label, window.span(draft.clips), max_words)
            for draft in patch.segments
            if draft.label in wrong_labels
        }
        segments = [
            segment.model_copy(update={"label": new.get(segment.label, segment.label)})
            for segment in patch.segments
        ]
        edges = [
            edge.model_copy(
                update={
                    "source": new.get(edge.source, edge.source),
                    "target": new.get(edge.target, edge.target),
                }
            )
            for edge in patch.edges
        ]
        return WrittenPatch(segments=tuple(segments), edges=tuple(edges))

    def _find_topics(self, window: EventWindow) -> list[_Topic]:
        if not window.previous or not window.new:
            open_segment = None
        else:
            previous = window.previous[-1]
            pause = window.clips[window.new[0]].start_ms - window.span(previous.clips).end_ms
            follows = 0 <= pause <= MAX_PAUSE_MS and max(previous.clips) < window.new[0]
            open_segment = previous if follows and len(previous.clips) < MAX_CLIPS else None
        clips = [*(open_segment.clips if open_segment else ()), *window.new]
        lines = [*(window.before if open_segment else ()), *window.lines]
        content = [line for line in lines if line.source not in BACKGROUND_SOURCES]
        # Clips by topic; the open segment is not extended beyond the longest.
        of_lines = [line.clip for line in content]
        runs = split_at_cuts(
            of_lines, clips, self._find_cuts(window, clips, content, open_segment, False)
        )
        if open_segment and len(runs[0]) > MAX_CLIPS and window.new[0] in runs[0]:
            runs = split_at_cuts(
                of_lines, clips, self._find_cuts(window, clips, content, open_segment, True)
            )
        topics = [
            _Topic(
                tuple(run),
                tuple(line for line in lines if line.clip in run),
                window.span(run),
                open_segment if open_segment and set(open_segment.clips) <= set(run) else None,
            )
            for run in runs
        ]
        return [topic for topic in topics if set(topic.clips) & set(window.new)]

    def _find_cuts(
        self,
        window: EventWindow,
        clips: Sequence[int],
        content: Sequence[WindowLine],
        open_segment: OpenSegment | None,
        separate: bool,
    ) -> list[int]:
        first_new = next(
            (n for n, line in enumerate(content) if line.clip in window.new), len(content)
        )
        vectors = np.asarray([line.vector for line in content], dtype=np.float64)
        depth = depth_scores(vectors) if len(content) > 1 else np.zeros(0)
        depth[: max(0, first_new - 1)] = 0  # Clips of the open segment are not split again.
        # Places of the lines after which nothing was watched for long, the longest pause first.
        gaps = [
            (window.clips[clip].start_ms - window.clips[previous].end_ms, clip)
            for previous, clip in pairwise(clips)
        ]
        long_gaps = sorted((-gap, clip) for gap, clip in gaps if gap > MAX_PAUSE_MS)
        positions = [
            next((n for n, x in enumerate(content) if x.clip >= clip), 0) for _, clip in long_gaps
        ]
        forced = [position for position in dict.fromkeys(positions) if position > 0]
        if open_segment and separate and 0 < first_new < len(content):
            forced = [first_new, *(cut for cut in forced if cut != first_new)]
        minimum = min(self._settings.segments_min, len(window.new) // 2) - 1
        maximum = self._settings.segments_max - 1
        return choose_cuts(depth, forced, CutLimits(minimum, maximum, MIN_LINES))


def expected_summary_lines(lines: float, clips: int, settings: MemorySettings) -> float:
    """Return about how many lines the summaries of a video's segments have together.

    Args:
        lines: Lines of the video that summaries are made of.
        clips: Its clips, at least one.
        settings: The limits of a patch.
    """
    windows = math.ceil(clips / settings.patch_every)
    of_window = lines / windows
    fewest = min(settings.segments_min, clips // windows // 2)
    topics = min(max(of_window / LINES_A_TOPIC, fewest, 1), settings.segments_max)
    topics = max(1, min(topics, of_window // MIN_LINES))
    of_topic = of_window / topics
    return windows * topics * min(of_topic, summary_size(int(of_topic)))


def _topic_of(segment: OpenSegment, window: EventWindow) -> _Topic:
    return _Topic(segment.clips, (), window.span(segment.clips), segment, segment.label)


def _draft(topic: _Topic) -> WrittenSegment:
    blank = "Nothing was said or read, and nobody was recognised."
    return WrittenSegment(
        label=topic.label,
        summary=summarise(topic.lines) or blank,
        clips=topic.clips,
        extends=topic.extends.label if topic.extends else None,
    )


def with_time(label: str, span: TimeSpan, max_words: int) -> str:
    """Return the label with its time, within the limit of words."""
    time = format_clock(span.start_ms)
    words = label.split()[: max_words - 1 - len(time.split())]
    return f"{' '.join(words).rstrip(',')} at {time}"


def _temporal_edges(window: EventWindow, topics: Sequence[_Topic]) -> Iterable[WrittenEdge]:
    """``overlap`` where neighbours share a clip, else ``before``."""
    timeline: list[_Topic] = list(topics)
    if window.previous and not any(topic.extends for topic in topics):
        previous = window.previous[-1]
        timeline.insert(0, _topic_of(previous, window))
    timeline.sort(key=lambda topic: (topic.span.start_ms, topic.span.end_ms))
    for earlier, later in pairwise(timeline):
        shared = sorted(set(earlier.clips) & set(later.clips))
        relation = Relation.OVERLAP if earlier.span.overlap_ms(later.span) else Relation.BEFORE
        relation_text = "overlaps" if relation == Relation.OVERLAP else "is over before"
        yield WrittenEdge(
            source=earlier.label,
            target=later.label,
            relation=relation,
            explicit=False,
            confidence=1.0,
            rationale=f"{earlier.span} {relation_text} {later.span}.",
            evidence=tuple(shared) or (max(earlier.clips), min(later.clips)),
        )


def _causal_edges(window: EventWindow, topics: Sequence[_Topic]) -> Iterable[WrittenEdge]:
    earlier = [
        _topic_of(segment, window)
        for segment in [*window.previous, *window.related]
        if all(topic.extends is not segment for topic in topics)
    ]
    finder = _CauseFinder([*topics, *earlier])
    new = [line for line in window.lines if line.source == MemorySource.SAID]
    for previous_line, line in zip([None, *new], new, strict=False):
        for cause in find_stated_causes(line.text):
            segments = finder.find_segments(cause, line, previous_line, topics)
            if segments is not None:
                quote = re.sub(r"\s+", " ", cause.quote).strip().rstrip(".")
                speaker, time = line.speaker or "Someone", format_clock(line.span.start_ms)
                yield WrittenEdge(
                    source=segments[0].label,
                    target=segments[1].label,
                    relation=cause.relation,
                    explicit=True,
                    confidence=0.7,
                    rationale=f'{speaker} says at {time}: "{quote}".',
                    evidence=(line.clip,),
                )


class _CauseFinder:
    """Finds the segments that the two sides of a stated cause refer to."""

    def __init__(self, topics: Sequence[_Topic]) -> None:
        # In how many lines a topic uses each telling word.
        self._word_counts = list[tuple[_Topic, Counter[str]]]()
        for topic in topics:
            texts = [line.text for line in topic.lines]
            if topic.extends and not texts:
                texts = [topic.extends.label, topic.extends.summary]
            counted = Counter(word for text in texts for word in set(content_words(text)))
            self._word_counts.append((topic, counted))

    def find_segments(
        self,
        cause: StatedCause,
        line: WindowLine,
        previous_line: WindowLine | None,
        topics: Sequence[_Topic],
    ) -> tuple[_Topic, _Topic] | None:
        """Source and target, where they differ and one of them is where it was said."""
        own_topic = next((topic for topic in topics if line.clip in topic.clips), None)
        if own_topic is None:
            return None
        source: _Topic | None
        if cause.source:
            source, target = (
                self._topic_of_clause(side, own_topic, line)
                for side in (cause.source, cause.target)
            )
        else:
            # The topic of the preceding line, unless there is a long pause.
            source, target = None, own_topic
            if previous_line and line.span.start_ms - previous_line.span.end_ms <= MAX_PAUSE_MS:
                clip = previous_line.clip
                source = next((topic for topic in topics if clip in topic.clips), None)
        if source is None or source is target or own_topic not in (source, target):
            return None
        return source, target

    def _topic_of_clause(self, clause: str, own_topic: _Topic, line: WindowLine) -> _Topic:
        """The one segment that clearly shares most words with a clause, else where it was said."""
        clause_words, line_words = set(content_words(clause)), set(content_words(line.text))
        shared = []
        for topic, uses in self._word_counts:
            # A word of the line itself is no evidence for the topic that contains the line.
            own_words = line_words if topic.lines and line.clip in topic.clips else set()
            shared.append((topic, sum(uses[word] > (word in own_words) for word in clause_words)))
        topic, best = max(shared, key=lambda pair: pair[1])
        clear = best >= MIN_SHARED_WORDS and [count for _, count in shared].count(best) == 1
        return topic if clear else own_topic
