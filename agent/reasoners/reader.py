"""The reasoner of a small language model: rules search, and one call reads what was found.

A model of a few billion parameters plans and searches worse than rules do, and each call takes it
seconds; but it answers in a sentence, and reads lists and slides. It hardly ever says that nothing
answers, so that is left to rules. It also names chapters, and says what is in them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import BaseModel, Field

from agent.builder import AskModel
from agent.harness.inform import quote_untrusted
from agent.reasoners.concluding import answering_subtasks
from agent.reasoners.llm import Caller
from agent.reasoners.local import LocalReasoner
from agent.reasoners.port import Conclusion, DecisionContext, Unreadable
from agent.reasoners.reply_schemas import with_schema
from domain.asking import STRUCTURE, Quote, answering
from domain.errors import BudgetExceeded, ModelError
from domain.people import TAG
from domain.sentences import ends_sentence, split_sentences
from domain.trajectory import EvidenceRetrieved
from domain.words import one_line
from models.messages import prompts_beside, system, text_tokens, user

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
        """Answer in a sentence from the lines that it cites, one of which is likely to answer.

        Where none is, nothing is read: of the answers that such a model gives all the same,
        few are right. What is told of structure is in words already, and options are
        compared by rules.
        """
        quoted, quotes = super().conclude(decision), offered(decision)
        told = any(quote.kind == STRUCTURE for quote in quotes)
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
