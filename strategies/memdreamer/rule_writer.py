"""Writes the hierarchy by rules: chapters, and what their sentences say.

It infers nothing: there are no causes, and of the whole video no tone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agent.builder import Embed
from models.sentences import SentenceParser
from retrieval.chapters import TopicLine, Word, begins_in, chapters
from retrieval.extracts import BREAK, DocumentCounts, coarser_caption
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
            [TopicLine(one.span, one.text, one.source) for one in window.embedded],
            np.array([one.vector for one in window.embedded], dtype=np.float32, ndmin=2),
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
        centre = np.sum([macro.vector for macro in own], axis=0)
        chosen: list[Macro] = []
        for macro in sorted(own, key=lambda one: -round(float(one.vector @ centre), 6)):
            words = " ".join(one.label for one in (*chosen, macro)).split()
            if not chosen or (len(chosen) < MOST_NAMES and len(words) < self._settings.label_words):
                chosen.append(macro)
        label = ", ".join(dict.fromkeys(macro.label for macro in own if macro in chosen))
        told = [macro.summary for macro in own if macro.summary != macro.label]
        text = _sentences(told, len(run)).replace(BREAK, " ")
        return SuperEvent(run, label, text or label, {}, {})

    def root(self, title: str, supers: Sequence[SuperEvent]) -> Root:
        """Return what recurs most in the super events; it is called as the video is."""
        most = self._settings.root_sentences[1]
        text = _sentences([one.text for one in supers], most).replace(BREAK, " ")
        themes = list(dict.fromkeys(one.label.split(",")[0] for one in _longest(supers)))
        shown = "; ".join(themes[: self._settings.themes[1]])
        return Root(title=title, text=f"{text}\nThemes: {shown}" if shown else text)


def _sentences(texts: Sequence[str], most: int) -> str:
    counts = DocumentCounts()
    for text in texts:
        counts.add(text)
    return coarser_caption(texts, counts, most)


def _longest(supers: Sequence[SuperEvent]) -> list[SuperEvent]:
    return sorted(supers, key=lambda one: (-len(one.run), one.run[0]))
