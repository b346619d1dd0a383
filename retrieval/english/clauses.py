"""Reads the clauses of an English sentence into subject, predicate and object; pure.

Only what the words say: pronouns other than "I" and "we" stand for nobody, purposes and conditions
are no events, and questions state nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.base import Frozen
from retrieval.english.phrases import NamedEntity, Phrase, phrase_at, phrases_at
from retrieval.english.verbs import VerbGroup, is_infinitive, is_verb, verb_group_at
from retrieval.english.words import (
    ADVERBS,
    AUXILIARIES,
    BE,
    CONJUNCTIONS,
    DETERMINERS,
    INTERJECTIONS,
    PARTICLES,
    PREPOSITIONS,
    Token,
    listed,
    verb_form,
)

PERCEIVED = frozenset({"see", "watch", "hear", "notice", "look at", "help", "film", "listen to"})
"""Verbs whose object may be what somebody does: "I watch Ann cut the bread"."""
_DATIVE = frozenset({"give", "hand", "show", "pass", "tell", "send", "teach", "bring", "offer"})
_THOUGHT = listed("say think know believe guess feel hope mean find mention explain tell remember")
"""Verbs before a statement: "she thinks Ann left"."""
_NAMING = frozenset({"name", "call"})
_DROPPED = listed(
    """back forward forwards backward backwards ahead aside together apart right left straight
    again"""
)
"""Particles that do not change what a verb means."""
_COMPOUND = (("in", "front", "of"), ("on", "top", "of"), ("next", "to"), ("out", "of"))
_LINKING = ADVERBS | CONJUNCTIONS
_AFTER_VERB = PREPOSITIONS | PARTICLES
_BEFORE_PHRASE = PREPOSITIONS | {"in front of"}
_ONLY_PREPOSITIONS = PREPOSITIONS - PARTICLES
_DIRECTED = frozenset({"to", "into", "onto", "from", "with"})
_RELATIVE = frozenset({"who", "which"})
_LIGHT = frozenset({"look", "glance", "peek"})
"""Nouns that are what is done, after "take", "have" and "give"."""


class Triple(Frozen):
    """What a sentence states; the predicate is a verb in base form with its preposition."""

    subject: str
    predicate: str
    object: str

    @property
    def text(self) -> str:
        """As a plain sentence, to be embedded and shown."""
        return f"{self.subject} {self.predicate} {self.object}"


class ClauseReader:
    """Reads one sentence.

    Args:
        tokens: of the sentence.
        speaker: who says it; "" for a description. "I" and "we" of speech are the speaker.
        narrated: a description without a subject is the narrator's: "Put the cup down."
    """

    def __init__(self, tokens: Sequence[Token], speaker: str = "", narrated: bool = False) -> None:
        self._tokens, self._speaker = tokens, speaker
        narrator = [Phrase("I", "I", pronoun=True)] if narrated and not speaker else []
        self._subjects = tuple(narrator)
        self._muted = bool(tokens) and tokens[-1].word == "?"
        self._last: tuple[Phrase, ...] = ()
        self.triples: dict[Triple, None] = {}
        self.entities: dict[str, NamedEntity] = {}

    def read(self) -> None:
        """Read the sentence from its first token to its last."""
        at = 0
        while at < len(self._tokens):
            at = max(at + 1, self._clause(at))

    def _clause(self, at: int) -> int:
        """Read what begins at a token, and return the token after it."""
        word = self._tokens[at].word
        if word in ("if", "whether", "unless"):
            self._muted = True
        if word in ("there", "here") and self._word(at + 1) in BE:
            return self._predicate(
                (Phrase("there", "there", pronoun=True),), VerbGroup("be", at + 2)
            )
        if self._tokens[at].mark or word in _LINKING or self._interjection(at):
            return at + 1
        if word in PREPOSITIONS:
            return self._noted(at + 1)
        return self._with_subject(at) or self._without_subject(at) or self._noted(at)

    def _interjection(self, at: int) -> bool:
        after = self._tokens[at + 1 : at + 2]
        return self._tokens[at].word in INTERJECTIONS and all(token.mark for token in after)

    def _noted(self, at: int) -> int:
        """Note the phrase that begins at a token as an entity."""
        found = phrase_at(self._tokens, at)
        self._note([found[0]] if found else [])
        return found[1] if found else at

    def _with_subject(self, at: int) -> int:
        """Read a clause that begins with its subject; 0 if none does."""
        if self._tokens[at].word in _RELATIVE:
            subjects, end = self._last[-1:], at + 1
        else:
            subjects, end = phrases_at(self._tokens, at, subjects=True)
        group = verb_group_at(self._tokens, self._after_place(end)) if subjects else None
        if group is None or self._is_shared(at, subjects):
            return 0
        self._note(subjects)
        self._subjects = subjects
        return self._predicate(subjects, group)

    def _after_place(self, at: int) -> int:
        """Return the token after "at the table" of "everyone at the table looks at me"."""
        if self._word(at) not in PREPOSITIONS or is_infinitive(self._tokens, at):
            return at
        found, end = phrases_at(self._tokens, at + 1)
        self._note(found)
        return end if found else at

    def _is_shared(self, at: int, subjects: Sequence[Phrase]) -> bool:
        """Check whether a bare word is rather the verb of the subject before: "and hand it"."""
        bare = is_verb(self._tokens, at) and len(subjects) == 1 and bool(self._subjects)
        return bare and at > 0 and self._tokens[at - 1].word in CONJUNCTIONS

    def _without_subject(self, at: int) -> int:
        """Read a verb that shares the subject before it; 0 if none begins here."""
        before = self._tokens[at - 1] if at else None
        joined = before is None or before.mark or before.word in _LINKING
        joined = joined and self._word(at) not in AUXILIARIES
        joined = joined and [self._word(at), self._word(at + 1)] != ["let", "us"]
        group = verb_group_at(self._tokens, at) if joined and self._subjects else None
        if group is None or (before is None and verb_form(self._tokens[at].word) == "third"):
            return 0
        return self._predicate(self._subjects, group)

    def _predicate(self, subjects: Sequence[Phrase], group: VerbGroup) -> int:
        """Read objects and prepositional phrases of a verb."""
        if group.verb == "be":
            return self._complement(subjects, group)
        words, at = self._particles(group.end)
        if group.passive:
            return self._passive(subjects, group, words, at)
        predicate = " ".join([group.text, *words])
        found, end = phrases_at(self._tokens, at)
        if not found:
            return self._prepositions(subjects, group, at, 1)
        verb = " ".join([group.verb, *words])
        if self._begins_clause(verb, found, end):
            self._emit(subjects, predicate, found[-1:] if verb in PERCEIVED else ())
            return self._embedded(at, found)
        return self._objects(subjects, group, words, (found, end))

    def _embedded(self, at: int, found: Sequence[Phrase]) -> int:
        """Read "Ann cut the bread" of "I watch Ann cut the bread", then restore the subject."""
        outer = self._subjects
        end = self._with_subject(at) or at
        self._note(found)
        self._subjects = outer
        return end

    def _objects(
        self,
        subjects: Sequence[Phrase],
        group: VerbGroup,
        words: Sequence[str],
        objects: tuple[tuple[Phrase, ...], int],
    ) -> int:
        found, at = objects
        if group.verb in ("take", "have", "give") and found[-1].head in _LIGHT and not words:
            return self._prepositions(subjects, VerbGroup(found[-1].head, at), at, 1)
        if group.verb in _DATIVE and not words:
            second, after = phrases_at(self._tokens, at)
            if second:
                self._emit(subjects, f"{group.text} to", found)
                found, at = second, after
        late, at = self._late_particle(at) if not words else ([], at)
        self._emit(subjects, " ".join([group.text, *words, *late]), found)
        self._last = found
        has_preposition = any(word in _ONLY_PREPOSITIONS for word in words)
        most = 0 if has_preposition else 1
        return self._prepositions(subjects, group, at, most, directed=most > 0)

    def _late_particle(self, at: int) -> tuple[list[str], int]:
        """Return the particle of "pick the box up"."""
        word = self._word(at)
        if word not in PARTICLES or phrase_at(self._tokens, at + 1) is not None:
            return [], at
        return ([] if word in _DROPPED else [word]), at + 1

    def _prepositions(
        self,
        subjects: Sequence[Phrase],
        group: VerbGroup,
        at: int,
        most: int,
        *,
        directed: bool = False,
    ) -> int:
        """Read prepositional phrases: the first ``most`` are stated of the subject.

        With ``directed``, so are later ones that say whereto, whence or with what.
        """
        while at < len(self._tokens):
            if is_infinitive(self._tokens, at):
                return self._purpose(at + 1)
            words, after = self._particles(at)
            found, end = phrases_at(self._tokens, after) if words else ((), after)
            if not words or not found or words[-1] not in _BEFORE_PHRASE:
                break
            if self._begins_clause("", found, end):
                return after
            if most > 0 or (directed and words[-1] in _DIRECTED):
                self._emit(subjects, " ".join([group.text, *words]), found)
                most -= 1
            self._note(found)
            self._last, at = found, end
        return at

    def _purpose(self, at: int) -> int:
        """Read over an infinitive: what is intended did not happen yet."""
        group = verb_group_at(self._tokens, at)
        return self._predicate((), group) if group else at

    def _passive(
        self, subjects: Sequence[Phrase], group: VerbGroup, words: Sequence[str], at: int
    ) -> int:
        participle = self._tokens[group.end - 1].word
        found, end = phrases_at(self._tokens, at)
        self._note(found)
        if list(words) == ["by"]:
            self._emit(found, group.text, subjects)
        elif words or group.verb in _NAMING:
            self._emit(subjects, " ".join([*group.before, "be", participle, *words]), found)
        if self._word(end) == "by":
            agents, end = phrases_at(self._tokens, end + 1)
            self._emit(agents, group.text, subjects)
        return end

    def _complement(self, subjects: Sequence[Phrase], group: VerbGroup) -> int:
        """Read what something is, or where."""
        be = VerbGroup("be", group.end, before=group.before)
        if subjects[-1:] and subjects[-1].name == "there":
            found, end = phrases_at(self._tokens, group.end)
            self._note(found)
            self._last = found
            return self._prepositions(found, be, end, 1)
        words, at = self._particles(group.end)
        if words:
            return max(at, self._prepositions(subjects, be, group.end, 1))
        found, end = phrases_at(self._tokens, at)
        if found:
            self._emit(subjects, be.text, found)
            return self._prepositions(subjects, be, end, 0)
        return self._quality(subjects, be, at)

    def _quality(self, subjects: Sequence[Phrase], be: VerbGroup, at: int) -> int:
        while at < len(self._tokens) and self._tokens[at].word in ADVERBS:
            at += 1
        if at < len(self._tokens) and "ADJ" in self._tokens[at].kinds:
            word = self._tokens[at].word
            self._emit(subjects, be.text, (Phrase(word, word, quality=True),))
            return at + 1
        return at

    def _particles(self, at: int) -> tuple[list[str], int]:
        """Return the particles and prepositions from a token, and the token after them."""
        words: list[str] = []
        while at < len(self._tokens) and not is_infinitive(self._tokens, at):
            compound = next((c for c in _COMPOUND if self._spells(at, c)), None)
            word = self._tokens[at].word
            if compound:
                words.append(" ".join(compound))
            elif word in _AFTER_VERB and not self._is_place(at):
                words += [] if word in _DROPPED else [word]
            elif word not in ADVERBS or self._determined(at):
                break
            at += len(compound or (word,))
        return words, at

    def _is_place(self, at: int) -> bool:
        """Check for "inside" and "outside" that no noun follows."""
        alone = self._word(at) in ("inside", "outside")
        return alone and phrase_at(self._tokens, at + 1) is None

    def _determined(self, at: int) -> bool:
        """Check whether a word that may be an adverb begins a phrase: "both hands"."""
        return self._word(at) in DETERMINERS and phrase_at(self._tokens, at) is not None

    def _begins_clause(self, verb: str, found: Sequence[Phrase], end: int) -> bool:
        """Check whether a phrase after a verb is the subject of a clause of its own."""
        if end >= len(self._tokens):
            return False
        word = self._tokens[end].word
        if word in AUXILIARIES:
            return True
        if not is_verb(self._tokens, end) or self._tokens[end].word in PARTICLES:
            return False
        stated = found[-1].pronoun or verb in _THOUGHT
        return verb in PERCEIVED or (stated and verb_form(word) in ("third", "past"))

    def _emit(
        self,
        subjects: Sequence[Phrase],
        predicate: str,
        objects: Sequence[Phrase],
    ) -> None:
        """State the triples of every subject with every object that stand for somebody."""
        self._note([*subjects, *objects])
        for subject in map(self._resolved, subjects):
            for thing in map(self._resolved, objects):
                if subject and thing and subject != thing and not self._muted:
                    text = self._told(predicate)
                    self.triples[Triple(subject=subject, predicate=text, object=thing)] = None

    def _told(self, predicate: str) -> str:
        """Drop "will" and "can" of descriptions, which tell what happens: "I'll open it"."""
        words = predicate.split(" ")
        return (
            predicate if self._speaker or words[0] not in ("will", "can") else " ".join(words[1:])
        )

    def _resolved(self, phrase: Phrase) -> str:
        """Return the entity that a phrase stands for; "" if nobody knows."""
        if phrase.name in ("I", "we") and self._speaker:
            return self._speaker
        return phrase.name if phrase.names_entity else ""

    def _note(self, found: Sequence[Phrase]) -> None:
        for phrase in found:
            entity = phrase.entity
            if entity and not (self._speaker and phrase.name in ("I", "we")):
                self.entities.setdefault(entity.name, entity)

    def _word(self, at: int) -> str:
        return self._tokens[at].word if at < len(self._tokens) else ""

    def _spells(self, at: int, words: Sequence[str]) -> bool:
        begins = self._tokens[at].word == words[0]
        return begins and [t.word for t in self._tokens[at : at + len(words)]] == list(words)
