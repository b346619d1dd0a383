"""What is shown to a language model: WorldMM's prompts with untrusted text made safe; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from string import ascii_uppercase
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, NonNegativeInt, StringConstraints

from agent.harness.inform import quote_untrusted
from agent.reasoners.port import Conclusion
from agent.reasoners.replies import Texts, cited, narrowed, one_of, refs_in
from domain.asking import Action, Evidence, Question
from domain.people import tags_in
from domain.sentences import EntityKind, NamedEntity, StatedFacts, Triple
from domain.time import TimeSpan, format_clock, parse_clock
from domain.trajectory import EvidenceRetrieved
from domain.words import one_line
from models.messages import join_lines, prompts_beside, sanitise, sanitise_generated
from strategies.asked import question_block
from strategies.policy_parts import after_complaint, made_up
from strategies.worldmm.captions import MENTIONED
from strategies.worldmm.semantic import Consolidation
from strategies.worldmm.settings import VISUAL

prompt = prompts_beside(__file__)

NOTHING = "(no search yet)"
SHOWN = 1_500
"""Characters of a piece of evidence that the history shows."""


def caption_page(span: TimeSpan, lines: Iterable[str]) -> str:
    """Return the request for a caption from lines or finer captions, in order."""
    shown = join_lines(map(sanitise_generated, lines))
    return prompt("caption", lines=shown, **_times(span))


def triples_page(caption: str, people: Iterable[str]) -> str:
    known = ", ".join(map(sanitise_generated, people)) or "nobody by name"
    return prompt("triples", people=known, caption=sanitise_generated(caption))


def semantic_page(span: TimeSpan, triples: Sequence[Triple]) -> str:
    """Return the request for what lasts of the triples of some minutes."""
    return prompt("semantic", triples=_numbered_triples(triples), **_times(span))


def consolidate_page(new: Triple, existing: Sequence[Triple]) -> str:
    """Return the request to consolidate a new triple with those like it."""
    return prompt("consolidate", new=_triple(new), existing=_numbered_triples(existing))


def filter_page(query: str, triples: Sequence[Triple]) -> str:
    """Return the request to choose among the triples matched to a query."""
    return prompt("filter", query=sanitise(query), triples=_numbered_triples(triples))


def choose_page(query: str, captions: Sequence[tuple[TimeSpan, str]], most: int) -> str:
    """Return the request to choose among captions of all scales, each with when it is."""
    shown = [f"{span}, {span.length_ms // 1000} s: {text}" for span, text in captions]
    numbered = enumerate(map(sanitise_generated, shown))
    return prompt(
        "choose",
        query=sanitise(query),
        captions=join_lines(f"{number}. {text}" for number, text in numbered),
        most=most,
    )


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
    return after_complaint(page, complaint)


def respond_system(*, images: bool) -> str:
    """Return the instructions of the answer; ``images``: some are shown."""
    page = prompt("respond_system")
    return f"{page}\n\n{prompt('respond_images')}" if images else page


def respond_page(question: Question, history: str, complaint: str = "") -> str:
    """Return the request for the answer; ``complaint`` is about the last reply."""
    page = prompt("respond", question=question_block(question), history=history or NOTHING)
    return after_complaint(page, complaint)


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


def _times(span: TimeSpan) -> dict[str, str]:
    return {"start": format_clock(span.start_ms), "end": format_clock(span.end_ms)}


def _triple(triple: Triple) -> str:
    parts = (triple.subject, triple.predicate, triple.object)
    return " | ".join(sanitise_generated(part).replace("|", "/") for part in parts)


def _numbered_triples(triples: Sequence[Triple]) -> str:
    return join_lines(f"{number}. {_triple(one)}" for number, one in enumerate(triples))


# The times of a video that a query names, as questions and models write them; pure.
#
# ``DAY 2 18:34:01 - 18:34:29``, ``d2 18:34``, ``12:30-12:50``, ``1:02:03 to 1:04:00``, ``12:30``.

_TIME = r"(?:d(?:ay)?\s*([1-9]\d{0,4})[\s,]+(?:at\s+)?)?(\d{1,6}(?::\d{2}){1,2})"
_SPAN = re.compile(
    rf"(?<![\w:.]){_TIME}(?:\s*(?:-|–|—|to|until)\s*{_TIME})?(?![\w:])", re.IGNORECASE
)


def find_span(text: str) -> TimeSpan | None:
    """Return the first stretch of time in a text, an instant for a single time; None without any.

    The second time is of the day of the first, unless it names one; one before the first is left
    out. Two numbers are minutes and seconds, but hours and minutes where a day is named.
    """
    match = _SPAN.search(text)
    if match is None:
        return None
    first_day, first, last_day, last = match.groups()
    start = _clock(first_day, first)
    end = _clock(last_day or first_day, last) if last else start
    return TimeSpan.of(start, max(start, end))


def names_only_time(text: str) -> bool:
    """Check whether a text is a stretch of time and nothing else."""
    return bool(_SPAN.fullmatch(text.strip()))


def _clock(day: str | None, clock: str) -> int:
    if day is None:
        return parse_clock(clock)
    return parse_clock(f"d{day} {clock}" if clock.count(":") == 2 else f"d{day} {clock}:00")


# What a language model replies to WorldMM's prompts, and what code makes of it; pure.

LONGEST_NAME = 120
"""Most characters of an entity or predicate."""

Name = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_NAME)
]
LONGEST_CAPTION = 4_000
"""Most characters of a caption, since later prompts repeat it."""
MOST_FACTS = 100
"""Most entities, and most triples, of a caption."""
MOST_LASTING = 20
"""Most triples that last of some minutes, since each may take a call to be consolidated."""

Memory = Literal["episodic", "semantic", "visual"]
"""The memories that a round may search."""


def _named(value: Any) -> Any:
    """Normalise the name of a memory; an empty one is none."""
    return value.strip().lower() or None if isinstance(value, str) else value


class WrittenCaption(BaseModel):
    """The caption of a stretch of time."""

    caption: str = Field(min_length=1)

    @property
    def text(self) -> str:
        return one_line(self.caption)

    def complaints(self, lines: Iterable[str]) -> list[str]:
        """Return what the model is asked to put right, given what it wrote of."""
        wrong = [] if self.text else ["the caption is empty"]
        if len(self.text) > LONGEST_CAPTION:
            wrong.append(f"the caption is longer than {LONGEST_CAPTION} characters")
        return [*wrong, *made_up([self.text], lines)]


class WrittenEntity(BaseModel):
    """An entity of a caption."""

    name: Name
    kind: Literal["PERSON", "GROUP", "LOCATION", "OBJECT", "CONCEPT"]


class WrittenTriple(BaseModel):
    """Subject, predicate and object."""

    subject: Name
    predicate: Name
    object: Name

    def triple(self) -> Triple:
        return Triple(
            subject=one_line(self.subject),
            predicate=one_line(self.predicate),
            object=one_line(self.object),
        )


class WrittenFacts(BaseModel):
    """The entities and triples of a caption."""

    entities: list[WrittenEntity]
    triples: list[WrittenTriple]

    def within_limits(self) -> Self:
        kept = {"entities": self.entities[:MOST_FACTS], "triples": self.triples[:MOST_FACTS]}
        return self.model_copy(update=kept)

    def facts(self, caption: str) -> StatedFacts:
        """Return what is sound: entities with known tags, and triples between them, each once."""
        known = tags_in([caption])
        entities = {
            (name := one_line(one.name)): NamedEntity(name=name, kind=EntityKind(one.kind))
            for one in self.entities
            if tags_in([one.name]) <= known
        }
        found = dict.fromkeys(one.triple() for one in self.triples)
        sound = [
            one
            for one in found
            if one.subject in entities and one.object in entities and is_sound(one, known)
        ]
        return StatedFacts(entities=tuple(entities.values()), triples=tuple(sound))

    def complaints(self, caption: str) -> list[str]:
        """Return what the model is asked to put right, given the caption."""
        known = {one_line(one.name) for one in self.entities}
        ends = [end for one in self.triples for end in (one.subject, one.object)]
        unlisted = dict.fromkeys(end for end in map(one_line, ends) if end not in known)
        wrong = [f"{end!r} is in a triple but not among the entities" for end in unlisted]
        wrong += _too_many(self.entities, MOST_FACTS, "entities")
        wrong += _too_many(self.triples, MOST_FACTS, "triples")
        predicates = [one.predicate for one in self.triples]
        return [*wrong, *made_up([*known, *ends, *predicates], [caption])]


class WrittenKnowledge(WrittenTriple):
    """A triple that lasts, and what it rests on."""

    evidence: list[NonNegativeInt] = Field(min_length=1)


class WrittenSemantics(BaseModel):
    """What lasts of some minutes."""

    triples: list[WrittenKnowledge]

    def within_limits(self) -> Self:
        return self.model_copy(update={"triples": self.triples[:MOST_LASTING]})

    def sound(self, shown: int) -> list[tuple[Triple, tuple[int, ...]]]:
        """Return the triples that rest on some of the ``shown`` ones, with their numbers."""
        resting = [(one.triple(), _known(one.evidence, shown)) for one in self.triples]
        return [(triple, evidence) for triple, evidence in resting if evidence]

    def complaints(self, shown: int) -> list[str]:
        """Return what the model is asked to put right."""
        resting = [
            f"{one.triple().text!r} rests on no triple that was shown: they are numbered from 0"
            for one in self.triples
            if not _known(one.evidence, shown)
        ]
        return [*resting, *_too_many(self.triples, MOST_LASTING, "triples")]


class ConsolidationReply(BaseModel):
    """What is replaced, and how the new one reads."""

    replaced: list[NonNegativeInt]
    triple: WrittenTriple

    def decision(self) -> Consolidation:
        """Return it as a decision, which is yet to be checked."""
        return Consolidation(replaced=tuple(self.replaced), triple=self.triple.triple())


class FilterReply(BaseModel):
    """The triples that bear on the query, best first."""

    kept: list[NonNegativeInt]

    def sound(self, shown: int) -> tuple[int, ...]:
        """Return the numbers that were shown, each once."""
        return _known(self.kept, shown)


class ChooseReply(BaseModel):
    """The captions that answer the query best, and why."""

    reason: str
    chosen: list[NonNegativeInt]

    def sound(self, shown: int, most: int) -> tuple[int, ...]:
        """Return at most so many of the numbers that were shown, each once."""
        return _known(self.chosen, shown)[:most]


class DecideReply(BaseModel):
    """Search one memory with one query, or answer."""

    reason: str
    action: Literal["search", "answer"]
    memory: Annotated[Memory | None, BeforeValidator(_named)] = None
    query: str = ""

    def complaints(self, offered: Sequence[str], *, by_words: bool = True) -> list[str]:
        """Return what the model is asked to put right.

        Args:
            offered: the memories that may be searched.
            by_words: images can be searched by what they show, not only by time.
        """
        if self.action == "answer":
            return []
        wrong = [] if self.query.strip() else ["a search needs a query"]
        if self.memory not in offered:
            wrong.append(f"search one of the memories {', '.join(offered)}")
        elif self.memory == VISUAL and not by_words and find_span(self.query) is None:
            wrong.append("visual takes a stretch of time, as in 12:30 - 12:50")
        return wrong

    def decision(self) -> Action:
        if self.action == "answer":
            return Action(kind="answer", reason=one_line(self.reason))
        query = one_line(self.query)
        return Action(kind="search", reason=one_line(self.reason), mode=self.memory, query=query)


class RespondReply(BaseModel):
    """The answer, and what it rests on."""

    found: bool = Field(description="whether the findings answer the question")
    option: str | None = Field(default=None, description="the letter, where there are options")
    answer: str
    evidence: Texts = Field(default=[], description="ids such as n12 or r3")

    def conclusion(self, *, options: bool) -> Conclusion:
        """Return the conclusion for the machine; a question with options gets one of them."""
        option = (self.option or "").strip()
        return Conclusion(
            text=one_line(self.answer),
            option=option or None,
            refs=refs_in(self.evidence),
            not_in_memory=not (self.found or options),
        )


def decide_form(offered: Sequence[str], *, searched: bool, narrow: bool) -> type[DecideReply]:
    """Return the schema of a decision: one of the offered memories, no answer before a search.

    ``narrow``: for a model in this process.
    """
    actions = ["search", "answer"] if searched else ["search"]
    return narrowed(DecideReply, {"action": one_of(actions), "memory": one_of(offered)}, narrow)


def respond_form(options: int, refs: Sequence[str], *, narrow: bool) -> type[RespondReply]:
    """Return the schema of an answer: one of so many options, citing some of these refs."""
    fields = {"option": one_of(ascii_uppercase[:options])} if options else {}
    if narrow:
        fields |= cited("evidence", refs)
    return narrowed(RespondReply, fields, narrow)


def _known(numbers: Iterable[int], shown: int) -> tuple[int, ...]:
    return tuple(dict.fromkeys(number for number in numbers if number < shown))


def _too_many(written: Sequence[object], most: int, what: str) -> list[str]:
    """Complain about more than so many."""
    return [f"these are {len(written)} {what}: write at most {most}"] if len(written) > most else []


def is_sound(triple: Triple, known: Set[str]) -> bool:
    """Check that a triple has known tags only, and not the predicate by which rules join."""
    return tags_in([triple.text]) <= known and triple.predicate != MENTIONED
