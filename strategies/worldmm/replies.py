"""What a language model replies to WorldMM's prompts, and what code makes of it; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from string import ascii_uppercase
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, NonNegativeInt, StringConstraints

from agent.reasoners.port import Conclusion
from agent.reasoners.replies import Texts, refs_in
from agent.reasoners.reply_schemas import cited, narrowed, one_of
from domain.asking import Action
from domain.people import TAG
from domain.stated import EntityKind, NamedEntity, StatedFacts, Triple
from strategies.worldmm.consolidation import Consolidation
from strategies.worldmm.levels import MENTIONED
from strategies.worldmm.parts import VISUAL
from strategies.worldmm.times import find_span

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
        """The caption on one line."""
        return _one_line(self.caption)

    def complaints(self, lines: Iterable[str]) -> list[str]:
        """Return what the model is asked to put right, given what it wrote of."""
        wrong = [] if self.text else ["the caption is empty"]
        if len(self.text) > LONGEST_CAPTION:
            wrong.append(f"the caption is longer than {LONGEST_CAPTION} characters")
        return [*wrong, *_made_up([self.text], tags_in(lines))]


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
        """Return it as a triple."""
        return Triple(
            subject=_one_line(self.subject),
            predicate=_one_line(self.predicate),
            object=_one_line(self.object),
        )


class WrittenFacts(BaseModel):
    """The entities and triples of a caption."""

    entities: list[WrittenEntity]
    triples: list[WrittenTriple]

    def within_limits(self) -> Self:
        """Return it without what is beyond the limits."""
        kept = {"entities": self.entities[:MOST_FACTS], "triples": self.triples[:MOST_FACTS]}
        return self.model_copy(update=kept)

    def facts(self, caption: str) -> StatedFacts:
        """Return what is sound: entities with known tags, and triples between them, each once."""
        known = tags_in([caption])
        entities = {
            (name := _one_line(one.name)): NamedEntity(name=name, kind=EntityKind(one.kind))
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
        known = {_one_line(one.name) for one in self.entities}
        ends = [end for one in self.triples for end in (one.subject, one.object)]
        unlisted = dict.fromkeys(end for end in map(_one_line, ends) if end not in known)
        wrong = [f"{end!r} is in a triple but not among the entities" for end in unlisted]
        wrong += _too_many(self.entities, MOST_FACTS, "entities")
        wrong += _too_many(self.triples, MOST_FACTS, "triples")
        predicates = [one.predicate for one in self.triples]
        return [*wrong, *_made_up([*known, *ends, *predicates], tags_in([caption]))]


class WrittenKnowledge(WrittenTriple):
    """A triple that lasts, and what it rests on."""

    evidence: list[NonNegativeInt] = Field(min_length=1)


class WrittenSemantics(BaseModel):
    """What lasts of some minutes."""

    triples: list[WrittenKnowledge]

    def within_limits(self) -> Self:
        """Return it without what is beyond the limits."""
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
        """Return the action for the machine."""
        if self.action == "answer":
            return Action(kind="answer", reason=_one_line(self.reason))
        query = _one_line(self.query)
        return Action(kind="search", reason=_one_line(self.reason), mode=self.memory, query=query)


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
            text=_one_line(self.answer),
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


def tags_in(texts: Iterable[str]) -> set[str]:
    """Return the tags of people in texts."""
    return {match[0] for text in texts for match in TAG.finditer(text)}


def _too_many(written: Sequence[object], most: int, what: str) -> list[str]:
    """Complain about more than so many."""
    return [f"these are {len(written)} {what}: write at most {most}"] if len(written) > most else []


def _made_up(texts: Iterable[str], known: set[str]) -> list[str]:
    """Complain about tags of people that nobody goes by."""
    return [f"nobody goes by {tag}" for tag in sorted(tags_in(texts) - known)]


def is_sound(triple: Triple, known: Set[str]) -> bool:
    """Check that a triple has known tags only, and not the predicate by which rules join."""
    return tags_in([triple.text]) <= known and triple.predicate != MENTIONED


def _one_line(text: str) -> str:
    return " ".join(text.split())
