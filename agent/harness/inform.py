"""Inform: what a reasoner is shown of a retrieval, of the ledger and of its own search.

Words from the memory are data, and so are a planner's and a model's own: they are put between
marks, on one line, without brackets that could form a citation or a mark.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from agent.harness.constrain import letter
from domain.asking import Action, Evidence, Ledger, Question, Subtask, SubtaskState
from domain.base import Frozen
from domain.people import TAG
from domain.search import STRUCTURE
from domain.skills import RoutedSkill, Tone
from domain.texts import strip_invisible
from domain.time import format_clock
from domain.trajectory import EvidenceRetrieved, Neighbour

FEW_REFS = 6
"""Refs that a sentence on structure is shown with, at most."""
LINE = 320
"""Characters of one memory that a card shows."""
SUMMARY, WHOLE_SUMMARY = 900, 4_000
"""Characters of a segment's summary that a card shows, and that the final evidence shows."""
MARKS = ("memory", "card", "contents", "ledger", "question", "option", "people", "focus", "subtask")
"""Marks around data; the system prompt says so."""
_MARK = re.compile(
    rf"[<＜]\s*+(?:/\s*+)?(?:{'|'.join(MARKS)})\b[^<＜>＞]*+(?:[>＞]|(?=[<＜]))", re.I
)
_TAGS = re.compile(rf"({TAG.pattern.replace('(', '(?:')})")
_BRACKETS = str.maketrans("<>[]＜＞［］【】⟨⟩", "‹›()‹›()()‹›")


def quote_untrusted(text: str, most: int = LINE) -> str:
    """Return untrusted text as a card may show it: one line, at most ``most`` characters.

    It cannot open or close a mark or form a citation: only people's tags keep their brackets.
    Invisible characters are removed.
    """
    flat = " ".join(_MARK.sub(" ", strip_invisible(text)).split())
    safe = "".join(
        part if TAG.fullmatch(part) else part.translate(_BRACKETS) for part in _TAGS.split(flat)
    )
    return safe if len(safe) <= most else truncated(safe, most - 1)


def truncated(text: str, most: int) -> str:
    """Truncate ``text`` to ``most`` characters without half a tag at the end, and add "…"."""
    text = text[:most]
    half = text.find("<", text.rfind(">") + 1)
    return text[: half if half >= 0 else None].rstrip() + "…"


def quote_label(text: str, most: int = 80) -> str:
    """Return untrusted text made safe between quotation marks."""
    return quote_untrusted(text, most).replace('"', "'")


class CardLine(Frozen):
    """One line of a card; ``score`` is its evidence's, None where it shows no evidence."""

    text: str
    score: float | None = None


def card(retrieval: EvidenceRetrieved, seen: Collection[str], repeats: bool) -> str:
    """Return the card of a search; on a repeated focus only new evidence is spelled out."""
    return "\n".join(line.text for line in card_lines(retrieval, seen, repeats))


def card_lines(
    retrieval: EvidenceRetrieved, seen: Collection[str], repeats: bool
) -> tuple[CardLine, ...]:
    """Return the lines of the card of a search."""
    shown = [e for e in retrieval.evidence if not (repeats and e.ref in seen)]
    head = [CardLine(text=line) for line in _card_head(retrieval, repeats)]
    evidence = [CardLine(text=memory_line(e), score=e.score) for e in shown]
    tail = ["Nothing new."] if repeats and not shown and not retrieval.refused else []
    tail += [_neighbour(n) for n in retrieval.neighbours if n.of or not repeats]
    return (*head, *evidence, *(CardLine(text=line) for line in [*tail, "</card>"]))


def _card_head(retrieval: EvidenceRetrieved, repeats: bool) -> list[str]:
    """Return the lines of a card before its evidence."""
    lines = [f'<card mode="{retrieval.mode}" query="{quote_label(retrieval.query, 120)}">']
    if retrieval.refused:
        lines.append(f"Refused: {quote_untrusted(retrieval.refused, 600)}")
    if retrieval.focus:
        again = " (as before; only what is new follows)" if repeats else ""
        lines.append(f'Focus: [{retrieval.focus}] "{quote_label(retrieval.focus_label)}"{again}')
    for quote in retrieval.quotes:
        if quote.kind == STRUCTURE:
            refs = " ".join(f"[{ref}]" for ref in quote.refs[:FEW_REFS])
            text = quote_untrusted(quote.text, SUMMARY)
            lines.append(f"Read off from structure, in words of the memory: {text} {refs}")
    if retrieval.nothing_close:
        lines.append("Nothing in memory is close to this query.")
    return lines


def memory_line(evidence: Evidence, *, whole: bool = False) -> str:
    """Return one memory with its citation, time and score; a summary's beginning, or all of it."""
    summary = WHOLE_SUMMARY if whole else SUMMARY
    most = summary if evidence.ref.startswith("s") else LINE
    head = f'<memory id="[{evidence.ref}]" time="{evidence.span}" score="{evidence.score:.2f}">'
    return f"{head}{quote_untrusted(evidence.full_text, most)}</memory>"


def _neighbour(neighbour: Neighbour) -> str:
    arrow = "->" if neighbour.outgoing else "<-"
    why = f" ({quote_untrusted(neighbour.rationale, 160)})" if neighbour.rationale else ""
    label = quote_label(neighbour.label)
    of = f"[{neighbour.of}] " if neighbour.of else ""
    return f'{of}Neighbour {arrow} {neighbour.relation}: "{label}" [{neighbour.ref}]{why}'


def edge_lines(searches: Sequence[EvidenceRetrieved]) -> Iterable[str]:
    """Return how the events in focus, and of the best lines, stand to others, each once."""
    found = (
        _neighbour(one if one.of else one.model_copy(update={"of": search.focus}))
        for search in searches
        if search.focus
        for one in search.neighbours
    )
    return dict.fromkeys(found)


def content_lines(contents: Sequence[str]) -> str:
    """Return the contents of the videos, one line each event; "" without any."""
    return "\n".join(
        ["<contents>", *map(quote_untrusted, contents), "</contents>"] * bool(contents)
    )


def ledger_lines(ledger: Ledger, current: Subtask | None, full: bool) -> str:
    """Return the ledger: in full if it changed, else in one line."""
    if not full:
        # The plan is shown with the question.
        states = ", ".join(f"{s.id} {s.state}" for s in ledger.subtasks)
        return f"<ledger>unchanged: {states}</ledger>"
    lines = [_subtask(s, current) for s in ledger.subtasks]
    return "\n".join(["<ledger>", *lines, "</ledger>"])


def plan_lines(planned: Ledger) -> str:
    """Return the plan as it is shown once with the question."""
    lines = [f"{s.id}{_after(s)} {quote_untrusted(s.text)}" for s in planned.subtasks]
    return "\n".join(["<ledger>", *lines, "</ledger>"]) if lines else ""


def _after(subtask: Subtask) -> str:
    return f" (after {', '.join(subtask.depends)})" if subtask.depends else ""


def has_news(ledger: Ledger, planned: Ledger) -> bool:
    """Check whether the ledger holds more than the plan and the counts of attempts."""
    return [_news(s) for s in ledger.subtasks] != [_news(s) for s in planned.subtasks]


def _news(subtask: Subtask) -> tuple[object, ...]:
    undecided = (SubtaskState.PENDING, SubtaskState.SEARCHING)
    state = None if subtask.state in undecided else subtask.state
    return subtask.id, subtask.text, state, subtask.answer, subtask.evidence


def _subtask(subtask: Subtask, current: Subtask | None) -> str:
    mark = "*" if current is not None and subtask.id == current.id else "-"
    answer = f": {quote_untrusted(subtask.answer)}" if subtask.answer else ""
    known = f" [{len(subtask.evidence)} pieces of evidence]" if subtask.evidence else ""
    state = f"{subtask.state}, {subtask.attempts} attempts"
    text = quote_untrusted(subtask.text)
    return f"{mark} {subtask.id} ({state}){_after(subtask)} {text}{answer}{known}"


def question_lines(question: Question) -> str:
    """Return the question with its lettered options and the time it is asked as of."""
    lines = [f"<question>{quote_untrusted(question.text, 2000)}</question>"]
    lines += [
        f'<option letter="{letter(i)}">{quote_untrusted(o, 600)}</option>'
        for i, o in enumerate(question.options)
    ]
    if question.as_of_ms is not None:
        lines.append(
            f"Asked at {format_clock(question.as_of_ms)} of the video; later is not known."
        )
    return "\n".join(lines)


def hint_lines(hints: Sequence[str], complaint: str, final: bool) -> str:
    """Return the harness's messages, the last complaint first."""
    lines = [f"Your last reply was refused: {complaint}"] if complaint else []
    lines += list(hints)
    if final:
        lines.append("This is the last round: answer now if you can.")
    return "\n".join(lines)


def skill_lines(skills: Iterable[RoutedSkill], tone: Tone) -> str:
    """Return the advice of the skills of one tone, one line each, without repeats."""
    advice = (line for skill in skills if skill.tone is tone for line in skill.instructions)
    return "\n".join(f"- {quote_untrusted(line)}" for line in dict.fromkeys(advice))


def people_lines(people: Iterable[tuple[str, str]]) -> str:
    """Return tags with their known names."""
    named = [f"{tag} is {quote_untrusted(name, 60)}" for tag, name in people]
    return "<people>" + "; ".join(named) + ".</people>" if named else ""


def focus_line(ref: str, label: str) -> str:
    """Return the segment in focus; no label if there is none."""
    return (
        f'<focus>[{ref}] "{quote_label(label)}"</focus>' if ref else "No segment is in focus yet."
    )


def subtask_line(subtask: Subtask | None) -> str:
    """Return the current subtask, else "the question"."""
    if subtask is None:
        return "the question"
    return f"<subtask>{subtask.id}: {quote_untrusted(subtask.text)}</subtask>"


def action_line(action: Action) -> str:
    """Return an action in words."""
    if action.kind == "answer":
        return "answer"
    return f"search {action.mode}: {quote_untrusted(action.query, 160)}"
