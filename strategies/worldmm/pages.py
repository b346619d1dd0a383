"""What is shown to a language model: WorldMM's prompts with untrusted text made safe; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent.harness.inform import quote_untrusted
from domain.asking import Evidence, Question
from domain.stated import Triple
from domain.time import TimeSpan, format_clock
from domain.trajectory import EvidenceRetrieved
from memory.prompts import join_lines, sanitise, sanitise_generated
from strategies.question_page import question_block
from strategies.worldmm.parts import VISUAL
from strategies.worldmm.prompts import prompt

NOTHING = "(no search yet)"
SHOWN = 1_500
"""Characters of a piece of evidence that the history shows."""


def caption_page(span: TimeSpan, lines: Iterable[str]) -> str:
    """Return the request for a caption from lines or finer captions, in order."""
    shown = join_lines(map(sanitise_generated, lines))
    return prompt("caption", lines=shown, **_times(span))


def triples_page(caption: str, people: Iterable[str]) -> str:
    """Return the request for the entities and triples of a caption."""
    known = ", ".join(map(sanitise_generated, people)) or "nobody by name"
    return prompt("triples", people=known, caption=sanitise_generated(caption))


def semantic_page(span: TimeSpan, triples: Sequence[Triple]) -> str:
    """Return the request for what lasts of the triples of some minutes."""
    return prompt("semantic", triples=_numbered_triples(triples), **_times(span))


def consolidate_page(new: Triple, existing: Sequence[Triple]) -> str:
    """Return the request to consolidate a new triple with those like it."""
    return prompt("consolidate", new=_triple(new), existing=_numbered_triples(existing))


def repair_page(complaints: Iterable[str]) -> str:
    """Return the request to reply again."""
    return prompt("repair", complaints=join_lines(f"- {sanitise(one)}" for one in complaints))


def filter_page(query: str, triples: Sequence[Triple]) -> str:
    """Return the request to choose among the triples matched to a query."""
    return prompt("filter", query=sanitise(query), triples=_numbered_triples(triples))


def choose_page(query: str, captions: Sequence[tuple[TimeSpan, str]], most: int) -> str:
    """Return the request to choose among captions of all scales, each with when it is."""
    shown = [f"{span}, {span.length_ms // 1000} s: {text}" for span, text in captions]
    return prompt("choose", query=sanitise(query), captions=_numbered(shown), most=most)


def decide_system(rounds: int, memories: Iterable[str], *, by_words: bool = True) -> str:
    """Return the instructions of the rounds; only these memories are named.

    Args:
        rounds: at most.
        memories: the names of those that may be searched.
        by_words: images can be searched by what they show, not only by time.
    """
    only_time = "" if by_words else "_time"
    pages = [f"decide_{memory}{only_time if memory == VISUAL else ''}" for memory in memories]
    offered = "\n".join(map(prompt, pages))
    return prompt("decide_system", memories=offered, rounds=rounds)


def decide_page(
    question: Question, history: str, round_number: int, rounds: int, complaint: str = ""
) -> str:
    """Return the request for the action of a round; ``complaint`` is about the last reply."""
    asked = question_block(question)
    shown = history or NOTHING
    page = prompt("decide", question=asked, history=shown, round=round_number, rounds=rounds)
    return _after_complaint(page, complaint)


def respond_system(*, images: bool) -> str:
    """Return the instructions of the answer; ``images``: some are shown."""
    page = prompt("respond_system")
    return f"{page}\n\n{prompt('respond_images')}" if images else page


def respond_page(question: Question, history: str, complaint: str = "") -> str:
    """Return the request for the answer; ``complaint`` is about the last reply."""
    page = prompt("respond", question=question_block(question), history=history or NOTHING)
    return _after_complaint(page, complaint)


def history_of(searches: Iterable[EvidenceRetrieved]) -> str:
    """Return all searches with what they found, oldest first."""
    return "\n".join(
        search_block(str(one.mode), one.query, one.evidence, one.refused) for one in searches
    )


def search_block(memory: str, query: str, found: Sequence[Evidence], refused: str = "") -> str:
    """Return a search with what it found, or why it was refused, as an entry of the history."""
    lines = [f"[{one.ref}] {one.span}: {quote_untrusted(one.full_text, SHOWN)}" for one in found]
    head = f"{memory}: {quote_untrusted(query)}"
    shown = f"refused: {quote_untrusted(refused)}" if refused else join_lines(lines)
    return "\n".join(["<found>", head, shown, "</found>"])


def _after_complaint(page: str, complaint: str) -> str:
    if not complaint:
        return page
    return f"{page}\n\n{prompt('refused', complaint=quote_untrusted(complaint))}"


def _times(span: TimeSpan) -> dict[str, str]:
    return {"start": format_clock(span.start_ms), "end": format_clock(span.end_ms)}


def _triple(triple: Triple) -> str:
    parts = (triple.subject, triple.predicate, triple.object)
    return " | ".join(sanitise_generated(part).replace("|", "/") for part in parts)


def _numbered_triples(triples: Sequence[Triple]) -> str:
    return join_lines(f"{number}. {_triple(one)}" for number, one in enumerate(triples))


def _numbered(texts: Sequence[str]) -> str:
    numbered = enumerate(map(sanitise_generated, texts))
    return join_lines(f"{number}. {text}" for number, text in numbered)
