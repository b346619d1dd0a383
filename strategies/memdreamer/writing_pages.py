"""What is shown to a language model that writes MemDreamer's hierarchy, made safe; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from domain.built import Node
from domain.memories import Memory, MemoryKind, MemorySource, with_attribution
from domain.time import TimeSpan, format_clock
from models.prompts import join_lines, prompts_beside, sanitise_generated
from strategies.memdreamer.settings import MINUTE, HierarchySettings, Limits
from strategies.memdreamer.writer import SuperEvent

prompt = prompts_beside(__file__)


def episodes_rules(settings: HierarchySettings) -> str:
    """Return the instructions for cutting a window."""
    least, most = settings.episode_ms
    return prompt(
        "episodes_system", least=least // MINUTE, most=most // MINUTE, words=settings.label_words
    )


def episodes_page(span: TimeSpan, lines: Sequence[Memory], *, ended: bool) -> str:
    """Return the request to cut a window."""
    end = f" {prompt('episodes_ended')}" if ended else ""
    return prompt("episodes", lines=_numbered_lines(lines), ended=end, **_times(span))


def graph_rules() -> str:
    """Return the instructions for the graph of an episode."""
    return prompt("graph_system")


def graph_page(span: TimeSpan, label: str, lines: Sequence[Memory]) -> str:
    """Return the request for the graph of an episode."""
    shown = _numbered_lines(lines, texts=True)
    return prompt("graph", label=sanitise_generated(label), lines=shown, **_times(span))


def supers_rules(settings: HierarchySettings, sizes: Limits) -> str:
    """Return the instructions for grouping episodes."""
    least, most = sizes
    return prompt(
        "supers_system",
        least=least,
        most=most,
        words=settings.label_words,
        from_words=settings.super_words[0],
        to_words=settings.super_words[1],
    )


def supers_page(before: SuperEvent | None, macros: Sequence[Node]) -> str:
    """Return the request to group episodes."""
    head = ""
    if before is not None:
        label = sanitise_generated(before.label)
        head = f"{prompt('supers_before', number=before.run[0], label=label)}\n\n"
    shown = join_lines(
        f"{one.number}. {one.span} {sanitise_generated(f'{one.label}: {one.text}')}"
        for one in macros
    )
    return prompt("supers", before=head, episodes=shown)


def root_rules(settings: HierarchySettings) -> str:
    """Return the instructions for what the whole is about."""
    return prompt(
        "root_system",
        words=settings.label_words,
        from_sentences=settings.root_sentences[0],
        to_sentences=settings.root_sentences[1],
        from_themes=settings.themes[0],
        to_themes=settings.themes[1],
    )


def root_page(supers: Iterable[SuperEvent]) -> str:
    """Return the request for what the whole is about."""
    shown = (f"{one.run[0]}. {one.label}: {one.text}" for one in supers)
    return prompt("root", events=join_lines(map(sanitise_generated, shown)))


def line_text(line: Memory) -> str:
    """Return a line with who says it, or that it is on screen."""
    if line.source is MemorySource.READ and line.kind is MemoryKind.EPISODIC:
        return f"On screen: {line.text}"
    return with_attribution(line.text, line.source, line.speaker)


def shown_texts(lines: Sequence[Memory]) -> list[Memory]:
    """Return the lines that are text on screen."""
    return [
        line
        for line in lines
        if line.source is MemorySource.READ and line.kind is MemoryKind.EPISODIC
    ]


def _numbered_lines(lines: Sequence[Memory], *, texts: bool = False) -> str:
    on_screen = {line.id: f" (T{n})" for n, line in enumerate(shown_texts(lines))} if texts else {}
    return join_lines(
        f"{number}.{on_screen.get(line.id, '')} {format_clock(line.span.start_ms)} "
        f"{sanitise_generated(line_text(line))}"
        for number, line in enumerate(lines)
    )


def _times(span: TimeSpan) -> dict[str, str]:
    return {"start": format_clock(span.start_ms), "end": format_clock(span.end_ms)}
