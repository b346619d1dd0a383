"""Writes the hierarchy by rules: borders where the topic shifts, texts of sentences of the lines.

It infers nothing: there are no causes, and of the whole video no tone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from domain.memories import BACKGROUND_SOURCES, MemorySource
from domain.time import TimeSpan, format_clock
from memory.writers.labels import Salience, summarise
from memory.writers.port import WindowLine
from models.sentences import SentenceParser
from retrieval.extracts import BREAK, DocumentCounts, coarser_caption
from strategies.memdreamer.episodes import Lengths, episode_ends
from strategies.memdreamer.graph_rules import RuleGraph
from strategies.memdreamer.settings import HierarchySettings
from strategies.memdreamer.subgraph import Numbers, Subgraph
from strategies.memdreamer.supers import Run
from strategies.memdreamer.writer import (
    Episode,
    Macro,
    Root,
    SuperEvent,
    SuperWindow,
    Window,
)

NOTHING = "Nothing was said or read, and nobody was recognised."
_SENTENCES = 12
"""Most sentences of the description of a super event, before its words are counted."""


class RuleWriter:
    """Writes by rules; see the module.

    Args:
        settings: the numbers.
        parser: parses sentences.
    """

    def __init__(self, settings: HierarchySettings, parser: SentenceParser) -> None:
        self._settings, self._parser = settings, parser
        parser.load()

    def episodes(self, window: Window) -> list[Episode]:
        """Return the complete episodes of a window, cut where the topic shifts."""
        content = [line for line in window.embedded if line.source not in BACKGROUND_SOURCES]
        ends = episode_ends(
            window.span,
            [line.span.start_ms for line in content],
            np.asarray([line.vector for line in content], dtype=np.float64),
            Lengths(*self._settings.episode_ms),
            ended=window.ended,
        )
        spans = [TimeSpan.of(*bounds) for bounds in pairwise([window.span.start_ms, *ends])]
        return self.described(window, spans)

    def described(self, window: Window, spans: Sequence[TimeSpan]) -> list[Episode]:
        """Return these parts of a window with labels, summaries and the lines begun in them."""
        salience = Salience(window.embedded)
        found = []
        for span in spans:
            embedded = [line for line in window.embedded if _begins_in(line.span, span)]
            label = salience.label(embedded, self._settings.label_words - 1)
            found.append(
                Episode(
                    span=span,
                    label=label or f"Nothing said at {format_clock(span.start_ms)}",
                    summary=summarise(embedded) or NOTHING,
                    lines=tuple(line for line in window.lines if _begins_in(line.span, span)),
                )
            )
        return found

    def graph(
        self, episode: Episode, numbers: Numbers, types: dict[str, str], people: Sequence[str]
    ) -> Subgraph:
        """Return the graph of an episode from its lines."""
        graph = RuleGraph(self._parser, episode.span, numbers, types, people)
        return graph.read(episode.lines)

    def supers(self, window: SuperWindow) -> list[SuperEvent]:
        """Return super events of neighbouring macro events that are alike; others stay."""
        macros = {macro.number: macro for macro in window.macros}
        known = {one.run: one for one in window.touched}
        return [known.get(run) or self.super_of(run, macros) for run in window.runs]

    def joined(self, pair: Sequence[SuperEvent], macros: Sequence[Macro]) -> SuperEvent:
        """Return one super event in place of two neighbours."""
        run = pair[0].run + pair[1].run
        return self.super_of(run, {macro.number: macro for macro in macros})

    def super_of(self, run: Run, macros: dict[int, Macro]) -> SuperEvent:
        """Return the super event of some macro events."""
        own = [macros[number] for number in run]
        lines = [_as_line(macro) for macro in macros.values()]
        label = Salience(lines).label(
            [_as_line(macro) for macro in own], self._settings.label_words - 1
        )
        text = self._extract([macro.summary for macro in own], self._settings.super_words[1])
        return SuperEvent(run, label or own[0].label, text, {}, {})

    def root(self, title: str, supers: Sequence[SuperEvent]) -> Root:
        """Return what recurs most in the super events; it is called as the video is."""
        most = self._settings.root_sentences[1]
        text = _sentences([one.text for one in supers], most).replace(BREAK, " ")
        themes = list(dict.fromkeys(one.label.split(",")[0] for one in _longest(supers)))
        shown = "; ".join(themes[: self._settings.themes[1]])
        return Root(title=title, text=f"{text}\nThemes: {shown}" if shown else text)

    def _extract(self, texts: Sequence[str], most_words: int) -> str:
        """Return sentences of texts, in order, of so many words at most."""
        for most in range(_SENTENCES, 0, -1):
            text = _sentences(texts, most)
            if len(text.split()) <= most_words:
                return text.replace(BREAK, " ")
        return " ".join(text.split()[:most_words])


def _sentences(texts: Sequence[str], most: int) -> str:
    counts = DocumentCounts()
    for text in texts:
        counts.add(text)
    return coarser_caption(texts, counts, most)


def _longest(supers: Sequence[SuperEvent]) -> list[SuperEvent]:
    return sorted(supers, key=lambda one: (-len(one.run), one.run[0]))


def _begins_in(inner: TimeSpan, outer: TimeSpan) -> bool:
    return outer.start_ms <= inner.start_ms < outer.end_ms


def _as_line(macro: Macro) -> WindowLine:
    """Return a macro event as a line, so that phrases of several can be weighed."""
    text = f"{macro.label}. {macro.summary}" if macro.summary != NOTHING else macro.label
    return WindowLine(macro.number, macro.span, text, MemorySource.MODEL, macro.vector)
