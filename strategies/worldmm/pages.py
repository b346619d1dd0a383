"""What is shown to a language model: WorldMM's prompts with untrusted text made safe; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from domain.asking import Evidence, Question
from domain.time import TimeSpan, format_clock
from memory.prompts import join_lines, sanitise, sanitise_generated
from strategies.worldmm.clauses import Triple
from strategies.worldmm.prompts import prompt

NOTHING = "(no search yet)"


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


def decide_system(rounds: int, *, visual: bool) -> str:
    """Return the instructions of the rounds; images are offered only where there are any."""
    memories = prompt("decide_memories")
    if visual:
        memories = f"{memories}\n{prompt('decide_visual')}"
    return prompt("decide_system", memories=memories, rounds=rounds)


def decide_page(question: Question, history: str, round_number: int, rounds: int) -> str:
    """Return the request for the action of a round."""
    asked = question_block(question)
    shown = history or NOTHING
    return prompt("decide", question=asked, history=shown, round=round_number, rounds=rounds)


def respond_page(question: Question, history: str) -> str:
    """Return the request for the answer."""
    return prompt("respond", question=question_block(question), history=history or NOTHING)


def question_block(question: Question) -> str:
    """Return the question with its options by letter, as material."""
    options = [
        f"<option>{chr(ord('A') + number)}. {sanitise(option)}</option>"
        for number, option in enumerate(question.options)
    ]
    return "\n".join([f"<question>{sanitise(question.text)}</question>", *options])


def search_block(memory: str, query: str, found: Sequence[Evidence]) -> str:
    """Return a search with what it found, as an entry of the history."""
    lines = [f"[{one.ref}] {one.span}: {sanitise_generated(one.text)}" for one in found]
    head = f"{memory}: {sanitise(query)}"
    return "\n".join(["<found>", head, join_lines(lines), "</found>"])


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
