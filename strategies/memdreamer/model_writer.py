"""Writes MemDreamer's hierarchy with a language model; what it cannot, is written by rules.

A reply that is not sound is asked for once more with the complaints. What is still unsound then is
mended by code: whatever a model replies, episodes and super events are a partition.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from agent.builder import AskModel, note_rules
from agent.reasoners.port import Unreadable
from domain.built import Node
from domain.memories import Memory, MemoryKind, MemorySource
from domain.people import tags_in
from domain.texts import one_line
from strategies.memdreamer import writing_pages as pages
from strategies.memdreamer.settings import SECOND, HierarchySettings
from strategies.memdreamer.subgraph import Numbers, Subgraph
from strategies.memdreamer.writer import (
    Episode,
    Root,
    RuleWriter,
    Run,
    SuperEvent,
    SuperWindow,
    Window,
    direction,
    partition,
)
from strategies.memdreamer.written import (
    LONGEST_TEXT,
    GraphOfReply,
    WrittenEpisode,
    WrittenEpisodes,
    WrittenGraph,
    WrittenRoot,
    WrittenSuper,
    WrittenSupers,
    short,
)
from strategies.policy_parts import ask_sound, made_up

_LOG = logging.getLogger(f"homer.{__name__}")

LEAST_MS = 20 * SECOND
"""An episode that is shorter is joined to the one before."""
_UNSEEN = frozenset({MemorySource.OBJECTS, MemorySource.COLOURS})
"""Sources whose lines a model is not shown: they recur in every clip, and say little."""


class HierarchyByModel:
    """Writes with a language model; see the module.

    Args:
        rules: writes what the model does not.
    """

    def __init__(self, model: AskModel, settings: HierarchySettings, rules: RuleWriter) -> None:
        self._model, self._settings, self._rules = model, settings, rules

    def episodes(self, window: Window) -> list[Episode]:
        """Return the complete episodes of a window as the model cuts it."""
        lines = _shown(window.lines)
        if not lines:
            return self._rules.episodes(window)
        texts = [pages.line_text(line) for line in lines]
        try:
            reply = ask_sound(
                self._model.ask,
                "episodes",
                pages.episodes_rules(self._settings),
                pages.episodes_page(window.span, lines, ended=window.ended),
                WrittenEpisodes,
                lambda written: written.complaints(texts, ended=window.ended),
            )
        except Unreadable:
            note_rules(_LOG, "the episodes of %s are by rules: no reply could be read", window.span)
            return self._rules.episodes(window)
        # Episodes follow each other without gaps from the window's start.
        known = [one for one in reply.episodes if 0 <= one.first < len(lines)]
        by_first = {one.first: one for one in sorted(known, key=lambda one: -one.last)}
        if not by_first:
            return self._rules.episodes(window)
        written = [by_first[first] for first in sorted(by_first)]
        kept, starts = [written[0]], [window.span.start_ms]
        for one in written[1:]:
            start = lines[one.first].span.start_ms
            if start - starts[-1] >= LEAST_MS and window.span.end_ms - start >= LEAST_MS:
                kept.append(one)
                starts.append(start)
        # The last complete episode ends where the line after it begins.
        last = kept[-1]
        after = max(last.first, last.last) + 1
        if window.ended or after >= len(lines):
            end = window.span.end_ms
        else:
            next_ms = lines[after].span.start_ms
            end = next_ms if next_ms - starts[-1] >= LEAST_MS else window.span.end_ms
        by_rules = self._rules.episodes(window, [*starts[1:], end])
        return [self._labelled(rule, one) for rule, one in zip(by_rules, kept, strict=True)]

    def _labelled(self, by_rules: Episode, written: WrittenEpisode) -> Episode:
        """Return an episode as it was written; by rules where that names nobody known."""
        known = tags_in(pages.line_text(line) for line in by_rules.lines)
        label = short(written.label, self._settings.label_words - 1)
        summary = one_line(written.summary)[:LONGEST_TEXT]
        if not label or made_up([label], known):
            label = by_rules.label
        if not summary or made_up([summary], known):
            summary = by_rules.summary
        return Episode(by_rules.span, label, summary, by_rules.lines)

    def graph(
        self, episode: Episode, numbers: Numbers, types: dict[str, str], people: Sequence[str]
    ) -> Subgraph:
        """Return the graph of an episode as the model writes it, with its texts on screen."""
        lines = _shown(episode.lines)
        if not lines:
            return self._rules.graph(episode, numbers, types, people)
        reader = GraphOfReply(episode.span, lines)
        try:
            reply = ask_sound(
                self._model.ask,
                "graph",
                pages.graph_rules(),
                pages.graph_page(episode.span, episode.label, lines),
                WrittenGraph,
                reader.complaints,
            )
        except Unreadable:
            note_rules(_LOG, "the graph of %s is by rules: no reply could be read", episode.span)
            return self._rules.graph(episode, numbers, types, people)
        return reader.read(reply, numbers, types)

    def supers(self, window: SuperWindow) -> list[SuperEvent]:
        """Return super events of the window's macro events as the model groups them."""
        numbers = [macro.number for macro in window.macros]
        texts = [f"{macro.label} {macro.text}" for macro in window.macros]
        before = window.before.run[0] if window.before else None
        try:
            reply = ask_sound(
                self._model.ask,
                "supers",
                pages.supers_rules(self._settings, window.sizes),
                pages.supers_page(window.before, window.macros),
                WrittenSupers,
                lambda written: written.complaints(numbers, texts, window.sizes[1], before),
            )
        except Unreadable:
            note_rules(_LOG, "super events of %d to %d are by rules", numbers[0], numbers[-1])
            return self._rules.supers(window)
        known = {macro.number: macro for macro in window.macros}
        written = {one.first: one for one in reversed(reply.supers) if one.first in known}
        vectors = {number: direction(macro) for number, macro in known.items()}
        runs = (
            partition(sorted(written), list(known), vectors, window.sizes)
            if written
            else window.runs
        )
        inner, outer = reply.edges([(run[0], run[-1]) for run in runs], before)
        found = []
        for run in runs:
            one = self._described(run, known, written.get(run[0]))
            found.append(
                SuperEvent(
                    one.run,
                    one.label,
                    one.text,
                    {key: why for key, why in inner.items() if key[0] in run},
                    {key: why for key, why in outer.items() if key[0] == run[0]},
                )
            )
        return found

    def _described(
        self, run: Run, macros: dict[int, Node], written: WrittenSuper | None
    ) -> SuperEvent:
        """Return a super event as it was written; by rules where that names nobody known."""
        by_rules = self._rules.super_of(run, macros)
        if written is None:
            return by_rules
        known = tags_in(f"{macros[number].label} {macros[number].text}" for number in run)
        label = short(written.label, self._settings.label_words - 1)
        text = one_line(written.description)[:LONGEST_TEXT]
        if not label or made_up([label], known):
            label = by_rules.label
        if not text or made_up([text], known):
            text = by_rules.text
        return SuperEvent(run, label, text, {}, {})

    def joined(self, pair: Sequence[SuperEvent], macros: Sequence[Node]) -> SuperEvent:
        """Return one super event in place of two neighbours, with the edges of both."""
        one, other = pair
        run = one.run + other.run
        window = SuperWindow(None, (), macros, [run], (len(run), len(run)))
        numbers = {macro.number: macro for macro in macros}
        found = self.supers(window)
        best = found[0] if len(found) == 1 else self._described(run, numbers, None)
        outer = {
            (run[0], label, target): why
            for (_, label, target), why in {**other.outer, **one.outer}.items()
            if target not in (one.run[0], other.run[0])
        }
        return SuperEvent(run, best.label, best.text, {**one.inner, **other.inner}, outer)

    def root(self, title: str, supers: Sequence[SuperEvent]) -> Root:
        """Return what the model says of the whole."""
        texts = [f"{one.label} {one.text}" for one in supers]
        try:
            reply = ask_sound(
                self._model.ask,
                "root",
                pages.root_rules(self._settings),
                pages.root_page(supers),
                WrittenRoot,
                lambda written: written.complaints(texts),
                strict=True,
            )
        except Unreadable:
            note_rules(_LOG, "the root is by rules: no reply could be read")
            return self._rules.root(title, supers)
        themes = "; ".join(map(one_line, reply.themes[: self._settings.themes[1]]))
        parts = [
            one_line(reply.description),
            f"Themes: {themes}" if themes else "",
            f"Tone: {one_line(reply.tone)}" if reply.tone.strip() else "",
        ]
        label = short(reply.title, self._settings.label_words - 1)
        return Root(label, "\n".join(part for part in parts if part))


def _shown(lines: Sequence[Memory]) -> list[Memory]:
    """Return the lines that a model is shown: what happened, and who somebody is."""
    kinds = (MemoryKind.EPISODIC, MemoryKind.CHARACTER)
    return [line for line in lines if line.kind in kinds and line.source not in _UNSEEN]
