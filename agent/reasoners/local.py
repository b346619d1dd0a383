"""Reasoners that search by rules: one that quotes memory, one whose answers a small model reads.

The first is deterministic: the same memory and question give the same decisions on any machine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import BaseModel, Field

from agent.builder import AskModel
from agent.harness.inform import quote_untrusted
from agent.reasoners.concluding import (
    NEAR_BEST,
    QuestionKind,
    answering_subtasks,
    as_query,
    by_options,
    by_quotation,
    decompose,
    kind_of,
    query_of,
    supports,
)
from agent.reasoners.llm import Caller
from agent.reasoners.port import Assessment, Conclusion, DecisionContext, Unreadable
from agent.reasoners.replies import with_schema
from domain.asking import NOTE, QUOTED, STRUCTURE, Action, Mode, Quote, Support, answering
from domain.errors import BudgetExceeded, ModelError
from domain.ledger import Edits, SubtaskDraft
from domain.people import TAG
from domain.sentences import ends_sentence, split_sentences
from domain.skills import combined_policy
from domain.trajectory import EvidenceRetrieved, Neighbour, Resolution
from domain.words import one_line
from models.messages import prompts_beside, system, text_tokens, user

MOMENTS = 20
"""Moments of the whole view that a search adds for it."""
CAUSAL = frozenset({"causes", "enables", "requires", "prevents"})


class LocalReasoner:
    """A reasoner that applies rules to what the harness shows and the searches find."""

    name = "local"
    note = NOTE

    def plan(self, decision: DecisionContext) -> tuple[SubtaskDraft, ...]:
        """Split the question by its options or parts, unless a skill says to leave it whole."""
        if combined_policy(decision.skills).split is False:
            return (SubtaskDraft(text=decision.question.text),)
        return decompose(decision.question.text, decision.question.options)

    def act(self, decision: DecisionContext) -> Action:
        """Search for the current subtask; answering is left to the conclusion."""
        text = decision.current.text if decision.current else decision.question.text
        mode = decision.forced or available_mode(choose_mode(decision), decision)
        if mode is Mode.NEIGHBOR:
            label = cause_of(decision.neighbours) or next(
                (n.label for n in decision.neighbours), ""
            )
            if label:
                return Action(kind="search", reason="along an edge", mode=mode, query=label)
            mode = available_mode(Mode.EVENT, decision)
        query = (
            query_of(decision.current, decision.question) if decision.current else as_query(text)
        )
        reasons = {
            Mode.EVENT: "find the event first",
            Mode.VIDEO: "look closer at what was said and done",
            Mode.KEYFRAME: "look at the images",
        }
        return Action(kind="search", reason=reasons.get(mode, ""), mode=mode, query=query)

    def assess(self, decision: DecisionContext) -> Assessment:
        """Resolve a subtask with what answers it: quotes, or lines that were weighed by option."""
        task, retrieval = decision.current, decision.found
        if task is None or retrieval is None:
            return Assessment()
        support: tuple[Support, ...] = ()
        if retrieval.weighed:
            lines = [e for e in retrieval.evidence if not e.ref.startswith("s")]
            ranked = sorted(lines, key=lambda e: (-e.score, e.span.start_ms))
            near = [e for e in ranked if e.score >= NEAR_BEST * ranked[0].score][:QUOTED]
            answer = " ".join(
                f"[{e.span}] {e.text}"
                for e in sorted(near, key=lambda e: (e.video, e.span.start_ms))
            )
            refs = tuple(e.ref for e in near)
        else:
            several = [quote for one in retrieval.by_video for quote in one.quotes]
            quotes = several or answering(retrieval.quotes)
            answer = " ".join(quote.text for quote in quotes)
            support = supports(quotes)
            refs = tuple(one.ref for one in support)
        if not refs:
            return Assessment()
        claim = Resolution(subtask=task.id, answer=answer, refs=refs, support=support)
        return Assessment(resolved=(claim,))

    def replan(self, decision: DecisionContext, reasons: tuple[str, ...]) -> Edits:  # noqa: ARG002
        """Return no edits: rules have no better plan than their first."""
        return Edits()

    def conclude(self, decision: DecisionContext) -> Conclusion:
        """Answer from the evidence of the options in the ledger, or with quotations."""
        return by_options(decision) if decision.question.options else by_quotation(decision)


def choose_mode(decision: DecisionContext) -> Mode:
    """Choose EVENT first, then a closer look; KEYFRAME for what something looks like.

    A cause is searched along a causal edge if there is one.
    """
    task = decision.current
    first = task is None or task.attempts <= 1
    # A skill's policy comes first.
    known = combined_policy(decision.skills).modes
    if known and task is not None:
        return known[min(max(1, task.attempts), len(known)) - 1]
    if decision.focus is None or task is None:
        return Mode.EVENT if first else Mode.VIDEO
    kind = kind_of(task.text)
    if kind is QuestionKind.CAUSE and first and cause_of(decision.neighbours):
        return Mode.NEIGHBOR
    if first:
        return Mode.EVENT
    if kind is QuestionKind.LOOKS:
        return Mode.KEYFRAME
    return Mode.VIDEO if task.attempts == 2 else Mode.EVENT


def available_mode(mode: Mode, decision: DecisionContext) -> Mode:
    """Return the mode, or VIDEO if it is switched off."""
    return mode if mode in decision.modes else Mode.VIDEO


def cause_of(neighbours: Sequence[Neighbour]) -> str:
    """Return the label of what caused the focus; "" if no edge says so."""
    causes = [n for n in neighbours if n.relation in CAUSAL and not n.outgoing]
    return next((n.label for n in causes), "")


# The reasoner of a small language model: rules search, and one call reads what was found.
#
# A model of a few billion parameters plans and searches worse than rules do, and each call takes
# it seconds; but it answers in a sentence, and reads lists and slides. It hardly ever says that
# nothing answers, so that is left to rules. It also names chapters, and says what is in them.


prompt = prompts_beside(__file__)

LINES, LINE = 8, 240
"""Lines that are read, and characters of each: a processor reads some 80 tokens a second."""
ANSWER = 240
"""Characters of an answer, at most."""
CHAPTER = 1_200
"""Tokens of the lines of a chapter that are read, at most: with the rules some 1,500."""
NOT_TOLD = re.compile(r"\W*(?:not (?:told|mentioned|stated|given|specified)\b|none\W*$)", re.I)
_FIGURES = re.compile(r"\d+(?:[.,:]\d+)*")


class ReadReply(BaseModel):
    """An answer, and the numbers of the lines that it rests on."""

    answer: str
    lines: list[int] = Field(default_factory=list)


class ChapterReply(BaseModel):
    """The title of a chapter, as in a table of contents, and what is in it."""

    title: str = Field(json_schema_extra={"maxLength": 60})
    summary: str = Field(json_schema_extra={"maxLength": ANSWER})


class ReadingReasoner(LocalReasoner):
    """Searches by rules, and answers with one call that reads the best quotes of all searches.

    Args:
        caller: makes the call.
    """

    name = "reader"
    note = ""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def conclude(self, decision: DecisionContext) -> Conclusion:
        """Answer in a sentence from the lines that it cites, one of which is likely to answer."""
        quoted, quotes = super().conclude(decision), offered(decision)
        told = any(quote.kind == STRUCTURE for quote in quotes)
        # Where no line is likely to answer, nothing is read: of the answers that such a model gives
        # all the same, few are right. What is told of structure is in words already, and options
        # are compared by rules.
        if decision.question.options or told or quoted.not_in_memory or not quotes:
            return quoted
        lines = "\n".join(
            f"{number}. ({quote.span}) {quote_untrusted(quote.text, LINE)}"
            for number, quote in enumerate(quotes, 1)
        )
        form = ReadReply.model_json_schema()
        form["properties"]["answer"]["maxLength"] = ANSWER
        form["properties"]["lines"] |= {"maxItems": 4}
        form["properties"]["lines"]["items"] = {"enum": list(range(1, len(quotes) + 1))}
        asked = user(f"<lines>\n{lines}\n</lines>\nQuestion: {decision.question.text}")
        try:
            reply = self._caller.ask(
                "read",
                [system(prompt("read")), asked],
                with_schema(ReadReply, form),
                round=decision.round,
                temperature=0.0,
                last=True,
            )
        except (Unreadable, BudgetExceeded):
            return quoted
        cited = [quotes[n - 1] for n in dict.fromkeys(reply.lines) if 0 < n <= len(quotes)]
        text = reply.answer.strip()
        if not text or NOT_TOLD.match(text) or not cited:
            return Conclusion(text="", not_in_memory=True, ranked=quoted.ranked)
        known = [decision.question.text, *(quote.text for quote in cited)]
        if not answering(cited) or not _stands(text, known):
            return quoted
        refs = tuple(dict.fromkeys(ref for quote in cited for ref in quote.refs))
        ranked = tuple(dict.fromkeys([*refs, *quoted.ranked]))
        return Conclusion(
            text=text, refs=refs, ranked=ranked, sure=max(quote.score for quote in cited)
        )


def offered(decision: DecisionContext) -> list[Quote]:
    """Return the quotes of all searches that the ledger holds, best first, none within another."""
    held = {piece.ref for piece in decision.held}
    tasks = {task.id for task in answering_subtasks(decision.ledger.subtasks)}
    found: list[EvidenceRetrieved] = [s.found for s in decision.searches if s.subtask in tasks]
    several = [quote for search in found for one in search.by_video for quote in one.quotes]
    known = [quote for search in found for quote in search.quotes] + several
    chosen: list[Quote] = []
    for quote in sorted(known, key=lambda quote: -quote.score):
        new = not any(quote.text in other.text for other in chosen)
        if new and held.issuperset(quote.refs) and len(chosen) < LINES:
            chosen.append(quote)
    return chosen


def worded_chapter(model: AskModel, lines: Sequence[str]) -> tuple[str, str] | None:
    """Return a chapter's title and a sentence or two on it, by one call that reads its lines.

    Of many lines some are read, evenly. None where there is no reply, or what it says is not there.
    """
    shown = [quote_untrusted(line, LINE) for line in lines]
    shown = shown[:: text_tokens("\n".join(shown)) // CHAPTER + 1]
    asked = user("\n".join(["<lines>", *shown, "</lines>"]))
    try:
        reply = model.ask("chapter", [system(prompt("chapter")), asked], ChapterReply)
    except (ModelError, BudgetExceeded):
        return None
    title, said = one_line(reply.title).strip(" ."), split_sentences(one_line(reply.summary))
    if said and not ends_sentence(said[-1]):  # It was cut.
        said = said[:-1]
    known = title and said and _stands(" ".join([title, *said]), lines)
    return (title, " ".join(said[:2])) if known else None


def _stands(text: str, known: Sequence[str]) -> bool:
    """Check that every figure and tag of a text is in what it rests on."""
    said, there = ({*_FIGURES.findall(one), *TAG.findall(one)} for one in (text, " ".join(known)))
    return said <= there
