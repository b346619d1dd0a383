"""The window of a video that is not cut into episodes yet, clip by clip; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agent.builder import Embed
from domain.built import Node, WatchedClip
from domain.memories import Memory, MemoryKind, MemorySource
from domain.time import TimeSpan
from models.sentences import SentenceParser
from retrieval.chapters import (
    BREAK,
    DocumentCounts,
    Word,
    begins_in,
    chapters,
    coarser_caption,
)
from strategies.memdreamer.settings import HierarchySettings, Limits
from strategies.memdreamer.subgraph import Numbers, RuleGraph, Subgraph

MAX_PAUSE_MS = 120_000
"""Where nothing was watched for longer, an episode ends."""

_Beginning = tuple[MemorySource, str | None, str, int]
_KINDS = frozenset({MemoryKind.EPISODIC, MemoryKind.CHARACTER})


class OpenWindow:
    """The lines since the last episode's end.

    Args:
        end_ms: the end of the last episode; None before the first clip.
        earlier: the clips that were built last.
    """

    def __init__(self, end_ms: int | None, earlier: Iterable[WatchedClip]) -> None:
        self._begin_ms = end_ms
        self.seen_ms = end_ms or 0
        self._lines: list[Memory] = []
        for clip in earlier:
            if end_ms is None or clip.span.end_ms > end_ms:
                self.add(clip)

    def pauses_before(self, clip: WatchedClip) -> bool:
        """Check whether so long was not watched before a clip that an episode ends there."""
        return self._begin_ms is not None and clip.span.start_ms - self.seen_ms > MAX_PAUSE_MS

    def add(self, clip: WatchedClip) -> None:
        """Add the next clip; lines that go on in it take the place of those that they go on."""
        if self._begin_ms is None or self.pauses_before(clip):
            self._begin_ms = clip.span.start_ms
            self._lines = []
        new = [line for line in clip.lines if line.kind in _KINDS]
        later = {_beginning(line): line for line in new}
        self._lines = [line for line in self._lines if not _goes_on(line, later)]
        self._lines += [line for line in new if line.span.start_ms >= self._begin_ms]
        self.seen_ms = max(self.seen_ms, clip.span.end_ms)

    @property
    def span(self) -> TimeSpan:
        """From the last episode's end to the last clip's."""
        begin = self._begin_ms or 0
        return TimeSpan.of(begin, max(begin, self.seen_ms))

    def lines(self, span: TimeSpan) -> Iterator[Memory]:
        """Yield the lines that begin in a part of it, in order of time."""
        order = sorted(self._lines, key=lambda one: (one.span.start_ms, one.span.end_ms, one.id))
        yield from (one for one in order if span.start_ms <= one.span.start_ms < span.end_ms)

    def begin_at(self, time_ms: int) -> None:
        """Forget what is before a time: the end of the last episode."""
        self._begin_ms = time_ms
        self._lines = [line for line in self._lines if line.span.start_ms >= time_ms]


def _beginning(line: Memory) -> _Beginning:
    """Return what a line has in common with the same line, gone on in the next clip.

    Speech goes on in further words, text on screen is the same.
    """
    words = "" if line.source is MemorySource.SAID else line.text
    return line.source, line.speaker, words, line.span.start_ms


def _goes_on(line: Memory, later: Mapping[_Beginning, Memory]) -> bool:
    """Check whether a line goes on in a later clip: then that line takes its place."""
    same = later.get(_beginning(line))
    return same is not None and same.clip != line.clip and line.kind is MemoryKind.EPISODIC


# Joins neighbouring macro events to super events, as they come in; pure.
#
# Only the last super events are formed anew with a macro event that comes in.

Vector = NDArray[np.float32]
Run = tuple[int, ...]
"""Numbers of the macro events of a super event, each one more than the one before."""


def direction(macro: Node) -> Vector:
    """Return the vector of a macro event, each of which has one."""
    if macro.vector is None:
        raise ValueError(f"macro event {macro.number} has no vector")
    return macro.vector


TOUCHED = 2
"""How many of the last super events a new macro event touches."""


def run_sizes(settings: HierarchySettings, macros: int, seen_ms: int) -> Limits:
    """Return the least and the most macro events of a super event, by what was seen so far."""
    least, most = settings.super_macros
    if seen_ms < settings.long_video_ms:
        return least, most
    fewest, many = settings.long_supers
    return max(least, macros // many), max(most, -(-macros // fewest))


def closest_pair(runs: Sequence[Run], vectors: Mapping[int, Vector], most: int) -> int | None:
    """Return the place of the run that is most like the next, of those that have room for it."""
    return _Runs(runs, vectors).closest(most)


def agglomerate(numbers: Sequence[int], vectors: Mapping[int, Vector], sizes: Limits) -> list[Run]:
    """Return runs of macro events: neighbours that are alike are joined, the most alike first.

    There are about as many runs as their middle size allows. A run of fewer than the least joins a
    neighbour with room for it, except for the last, which is still growing.
    """
    least, most = sizes
    found = _Runs([(number,) for number in numbers], vectors)
    wanted = max(1, round(2 * len(numbers) / (least + most)))
    while len(found.runs) > wanted and found.join_closest(most):
        pass
    while found.join_small(least, most):
        pass
    return found.runs


def partition(
    firsts: Sequence[int], numbers: Sequence[int], vectors: Mapping[int, Vector], sizes: Limits
) -> list[Run]:
    """Return runs that begin with these macro events, mended to the sizes.

    Runs of more than the most are split evenly. Where there are more runs than their least size
    allows, neighbours that are alike are joined.

    Args:
        firsts: of ``numbers``, ascending; the first run begins with the first macro event anyway.
        numbers: of the macro events, in order.
        vectors: of the macro events.
        sizes: the least and the most macro events of a run.
    """
    least, most = sizes
    begins = sorted({0, *(numbers.index(first) for first in firsts)})
    runs: list[Run] = []
    for begin, end in pairwise([*begins, len(numbers)]):
        parts = -(-(end - begin) // most)
        cuts = [begin + (end - begin) * part // parts for part in range(parts + 1)]
        runs += [tuple(numbers[a:b]) for a, b in pairwise(cuts)]
    found = _Runs(runs, vectors)
    allowed = max(1, -(-len(numbers) // least))
    while len(found.runs) > allowed and found.join_closest(most):
        pass
    return found.runs


class _Runs:
    """Runs in order, with how alike each is to the next."""

    def __init__(self, runs: Sequence[Run], vectors: Mapping[int, Vector]) -> None:
        self.runs = list(runs)
        self._sums = [np.sum([vectors[one] for one in run], axis=0) for run in runs]
        self._alike = [self._likeness(at) for at in range(len(runs) - 1)]

    def _likeness(self, at: int) -> float:
        """Return the cosine of the mean vectors of a run and the next."""
        one, other = self._sums[at], self._sums[at + 1]
        norms = float(np.linalg.norm(one) * np.linalg.norm(other))
        return round(float(one @ other) / norms, 6) if norms > 0 else 0.0

    def _fits(self, at: int, most: int) -> bool:
        return len(self.runs[at]) + len(self.runs[at + 1]) <= most

    def closest(self, most: int) -> int | None:
        """Return the place of the run that is most like the next, of those that have room."""
        places = [at for at in range(len(self._alike)) if self._fits(at, most)]
        return max(places, key=lambda at: (self._alike[at], -at), default=None)

    def join_closest(self, most: int) -> bool:
        """Join the neighbours that are most alike of those that have room; False without any."""
        at = self.closest(most)
        if at is not None:
            self._join(at)
        return at is not None

    def join_small(self, least: int, most: int) -> bool:
        """Join one run of fewer than the least to a neighbour with room; False without any."""
        for at, run in enumerate(self.runs[:-1]):
            around = [place for place in (at - 1, at) if place >= 0 and self._fits(place, most)]
            if len(run) < least and around:
                self._join(max(around, key=lambda place: (self._alike[place], -place)))
                return True
        return False

    def _join(self, at: int) -> None:
        self.runs[at : at + 2] = [self.runs[at] + self.runs[at + 1]]
        self._sums[at : at + 2] = [self._sums[at] + self._sums[at + 1]]
        del self._alike[at]
        for place in (at - 1, at):
            if 0 <= place < len(self._alike):
                self._alike[place] = self._likeness(place)


# The port of what writes MemDreamer's hierarchy, with what it is given and what it returns.


@dataclass(frozen=True, eq=False)
class Window:
    """A window of the video that is to be cut, with its lines in order of time.

    ``told`` are those of them that tell what happens, ``vectors`` (N, D) theirs. With ``ended``
    nothing follows it, so that its last episode is complete.
    """

    span: TimeSpan
    lines: tuple[Memory, ...]
    told: tuple[Memory, ...]
    vectors: NDArray[np.float32] = field(repr=False)
    ended: bool


@dataclass(frozen=True)
class Episode:
    """A complete episode of a window: what is to be a macro event, with its lines."""

    span: TimeSpan
    label: str
    summary: str
    lines: tuple[Memory, ...] = ()


@dataclass(frozen=True)
class SuperEvent:
    """A super event: the macro events of ``run``, with its label and description.

    ``inner`` are edges between its macro events, ``outer`` from it to other super events, each
    (from, label, to) with its reason; super events go by their first macro event here.
    """

    run: Run
    label: str
    text: str
    inner: Mapping[tuple[int, str, int], str]
    outer: Mapping[tuple[int, str, int], str]


@dataclass(frozen=True)
class SuperWindow:
    """What super events are to be made of.

    Attributes:
        before: the super event before those that are touched, if there is one.
        touched: those that are formed anew.
        macros: the macro events of those that are touched, with the new ones last.
        runs: how they are joined by rules.
        sizes: the least and the most macro events of a super event.
    """

    before: SuperEvent | None
    touched: Sequence[SuperEvent]
    macros: Sequence[Node]
    runs: Sequence[Run]
    sizes: Limits


@dataclass(frozen=True)
class Root:
    """What the whole video is about so far; ``text`` is as it is stored."""

    title: str
    text: str


class HierarchyWriter(Protocol):
    """Writes the hierarchy."""

    def episodes(self, window: Window) -> list[Episode]:
        """Return the complete episodes of a window: in order, without gaps, from its start."""

    def graph(
        self, episode: Episode, numbers: Numbers, types: dict[str, str], people: Sequence[str]
    ) -> Subgraph:
        """Return the graph of an episode; not all of it has to be sound."""

    def supers(self, window: SuperWindow) -> list[SuperEvent]:
        """Return super events that are a partition of the window's macro events."""

    def joined(self, pair: Sequence[SuperEvent], macros: Sequence[Node]) -> SuperEvent:
        """Return one super event in place of two neighbours, of all their macro events."""

    def root(self, title: str, supers: Sequence[SuperEvent]) -> Root:
        """Return what the whole video is about."""


# Writes the hierarchy by rules: chapters, and what their sentences say.
#
# It infers nothing: there are no causes, and of the whole video no tone.

MOST_NAMES = 3
"""Names of macro events that a super event is called by."""


class RuleWriter:
    """Writes by rules; see the module. Chapters are worded by ``word``, if anything does."""

    def __init__(
        self,
        settings: HierarchySettings,
        parser: SentenceParser,
        embed: Embed,
        word: Word | None = None,
    ) -> None:
        self._settings, self._parser, self._embed, self._word = settings, parser, embed, word
        parser.load()

    def episodes(self, window: Window, ends: Sequence[int] | None = None) -> list[Episode]:
        """Return the complete episodes of a window: cut where the topic changes, or at ``ends``."""
        found = chapters(
            window.span,
            window.told,
            window.vectors,
            self._parser,
            self._embed,
            ends=ends,
            ended=window.ended,
            word=self._word,
        )
        return [
            Episode(
                span=one.span,
                label=one.name,
                summary=" ".join(one.summary) or one.name,
                lines=tuple(line for line in window.lines if begins_in(line.span, one.span)),
            )
            for one in found
        ]

    def graph(
        self, episode: Episode, numbers: Numbers, types: dict[str, str], people: Sequence[str]
    ) -> Subgraph:
        graph = RuleGraph(self._parser, episode.span, numbers, types, people)
        return graph.read(episode.lines)

    def supers(self, window: SuperWindow) -> list[SuperEvent]:
        """Return super events of neighbouring macro events that are alike; others stay."""
        macros = {macro.number: macro for macro in window.macros}
        known = {one.run: one for one in window.touched}
        return [known.get(run) or self.super_of(run, macros) for run in window.runs]

    def joined(self, pair: Sequence[SuperEvent], macros: Sequence[Node]) -> SuperEvent:
        """Return one super event in place of two neighbours."""
        run = pair[0].run + pair[1].run
        return self.super_of(run, {macro.number: macro for macro in macros})

    def super_of(self, run: Run, macros: dict[int, Node]) -> SuperEvent:
        own = [macros[number] for number in run]
        centre = np.sum([direction(macro) for macro in own], axis=0)
        chosen: list[Node] = []
        for macro in sorted(own, key=lambda one: -round(float(direction(one) @ centre), 6)):
            words = " ".join(one.label for one in (*chosen, macro)).split()
            if not chosen or (len(chosen) < MOST_NAMES and len(words) < self._settings.label_words):
                chosen.append(macro)
        label = ", ".join(dict.fromkeys(macro.label for macro in own if macro in chosen))
        told = [macro.text for macro in own if macro.text != macro.label]
        text = _sentences(told, len(run)).replace(BREAK, " ")
        return SuperEvent(run, label, text or label, {}, {})

    def root(self, title: str, supers: Sequence[SuperEvent]) -> Root:
        """Return what recurs most in the super events; it is called as the video is."""
        most = self._settings.root_sentences[1]
        text = _sentences([one.text for one in supers], most).replace(BREAK, " ")
        themes = list(
            dict.fromkeys(
                one.label.split(",")[0]
                for one in sorted(supers, key=lambda one: (-len(one.run), one.run[0]))
            )
        )
        shown = "; ".join(themes[: self._settings.themes[1]])
        return Root(title=title, text=f"{text}\nThemes: {shown}" if shown else text)


def _sentences(texts: Sequence[str], most: int) -> str:
    counts = DocumentCounts()
    for text in texts:
        counts.add(text)
    return coarser_caption(texts, counts, most)
