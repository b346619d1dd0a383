"""Writes MemDreamer's hierarchy with a language model; what it cannot, is written by rules.

A reply that is not sound is asked for once more with the complaints. What is still unsound then is
mended by code: whatever a model replies, episodes and super events are a partition.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agent.builder import AskModel, note_rules
from agent.reasoners.port import Unreadable
from domain.built import Node
from domain.memories import Memory, MemoryKind, MemorySource
from domain.people import tags_in
from domain.time import TimeSpan, format_clock
from domain.words import one_line
from models.messages import join_lines, prompts_beside, sanitise_generated
from strategies.memdreamer.settings import MINUTE, SECOND, HierarchySettings
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
    line_text,
    short,
    shown_texts,
)
from strategies.policy_parts import ask_sound, made_up

prompt = prompts_beside(__file__)

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
        texts = [line_text(line) for line in lines]
        least, most = self._settings.episode_ms
        words = self._settings.label_words
        note = f" {prompt('episodes_ended')}" if window.ended else ""
        try:
            reply = ask_sound(
                self._model.ask,
                "episodes",
                prompt("episodes_system", least=least // MINUTE, most=most // MINUTE, words=words),
                prompt("episodes", lines=_numbered(lines), ended=note, **_times(window.span)),
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
        known = [line_text(line) for line in by_rules.lines]
        label, summary = self._sound(written.label, written.summary, known)
        return replace(by_rules, label=label or by_rules.label, summary=summary or by_rules.summary)

    def _sound(self, label: str, text: str, known: Iterable[str]) -> tuple[str, str]:
        """Return a label and a text in their limits; "" for one that names nobody known."""
        tags = tags_in(known)
        label = short(label, self._settings.label_words - 1)
        text = one_line(text)[:LONGEST_TEXT]
        return "" if made_up([label], tags) else label, "" if made_up([text], tags) else text

    def graph(
        self, episode: Episode, numbers: Numbers, types: dict[str, str], people: Sequence[str]
    ) -> Subgraph:
        """Return the graph of an episode as the model writes it, with its texts on screen."""
        lines = _shown(episode.lines)
        if not lines:
            return self._rules.graph(episode, numbers, types, people)
        reader = GraphOfReply(episode.span, lines)
        shown, label = _numbered(lines, texts=True), sanitise_generated(episode.label)
        try:
            reply = ask_sound(
                self._model.ask,
                "graph",
                prompt("graph_system"),
                prompt("graph", label=label, lines=shown, **_times(episode.span)),
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
        before, head = None, ""
        if window.before is not None:
            before = window.before.run[0]
            label = sanitise_generated(window.before.label)
            head = f"{prompt('supers_before', number=before, label=label)}\n\n"
        least, most = window.sizes
        rules = prompt(
            "supers_system",
            least=least,
            most=most,
            words=self._settings.label_words,
            from_words=self._settings.super_words[0],
            to_words=self._settings.super_words[1],
        )
        shown = join_lines(
            f"{one.number}. {one.span} {sanitise_generated(f'{one.label}: {one.text}')}"
            for one in window.macros
        )
        try:
            reply = ask_sound(
                self._model.ask,
                "supers",
                rules,
                prompt("supers", before=head, episodes=shown),
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
        return [
            replace(
                self._described(run, known, written.get(run[0])),
                inner={key: why for key, why in inner.items() if key[0] in run},
                outer={key: why for key, why in outer.items() if key[0] == run[0]},
            )
            for run in runs
        ]

    def _described(
        self, run: Run, macros: dict[int, Node], written: WrittenSuper | None
    ) -> SuperEvent:
        """Return a super event as it was written; by rules where that names nobody known."""
        by_rules = self._rules.super_of(run, macros)
        if written is None:
            return by_rules
        known = (f"{macros[number].label} {macros[number].text}" for number in run)
        label, text = self._sound(written.label, written.description, known)
        return replace(by_rules, label=label or by_rules.label, text=text or by_rules.text)

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
        texts = [f"{one.label} {one.text}" for one in supers]
        rules = prompt(
            "root_system",
            words=self._settings.label_words,
            from_sentences=self._settings.root_sentences[0],
            to_sentences=self._settings.root_sentences[1],
            from_themes=self._settings.themes[0],
            to_themes=self._settings.themes[1],
        )
        shown = (f"{one.run[0]}. {one.label}: {one.text}" for one in supers)
        try:
            reply = ask_sound(
                self._model.ask,
                "root",
                rules,
                prompt("root", events=join_lines(map(sanitise_generated, shown))),
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


def _numbered(lines: Sequence[Memory], *, texts: bool = False) -> str:
    on_screen = {line.id: f" (T{n})" for n, line in enumerate(shown_texts(lines))} if texts else {}
    return join_lines(
        f"{number}.{on_screen.get(line.id, '')} {format_clock(line.span.start_ms)} "
        f"{sanitise_generated(line_text(line))}"
        for number, line in enumerate(lines)
    )


def _times(span: TimeSpan) -> dict[str, str]:
    return {"start": format_clock(span.start_ms), "end": format_clock(span.end_ms)}
