"""What sentences name and state: entities, triples and named entities, from spaCy's dependencies.

Only what the words say: pronouns other than "I" and "we" stand for nobody, purposes, wishes and
conditions are no events, and questions state nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib import resources
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from domain.base import Frozen
from domain.people import TAG
from domain.sentences import EntityKind, NamedEntity, StatedFacts, Triple
from models.sentences import ENGLISH, SentenceParser, name_of
from retrieval.heuristics.options import NOT_PEOPLE
from retrieval.heuristics.questions import detect_language

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

LONGEST = 1_000
"""Letters of a sentence; what follows is not read."""
FIRST_PERSON_SHARE = 0.1
"""Least share of sentences with "I" in descriptions that a narrator writes."""

_FIRST_PERSON = re.compile(r"\b(?:I|my|me)\b")
_SPOKEN = re.compile(rf"(?P<who>{TAG.pattern}|[A-Z][\w'’]*(?: [A-Z][\w'’]*){{0,2}}): ?(?P<text>.+)")
_KIND_OF_LINE = frozenset({"Seen", "Heard", "Screen", "Music", "Sound"})
"""What stands before a colon without being a speaker."""
_ASIDES = re.compile(r"[“\"][^“”\"]*+[”\"]|\([^()]*+\)")
# Laughs and hesitations, which the tagger takes for names.
_FILLERS = re.compile(r"\b(?:(?:h[ae]){2,}h?|h+m+|u+[hm]+|a+h+|o+h+)\b[,.!]?", re.IGNORECASE)
_PIECES = re.compile(r"(?<=[.!?;])\s+")


class Known(Frozen):
    """Who is known of a video, and whether its descriptions are written by one who takes part."""

    people: tuple[str, ...] = ()
    narrated: bool = False


WORDS = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(
        resources.files("domain.word_lists").joinpath("english.toml").read_text("utf-8")
    ).items()
}
_KINDS = {
    **dict.fromkeys(("PERSON", "PER"), EntityKind.PERSON),
    **dict.fromkeys(("NORP", "ORG"), EntityKind.GROUP),
    **dict.fromkeys(("GPE", "LOC", "FAC"), EntityKind.LOCATION),
}
"""What named entities are, by the labels of spaCy's pipelines."""
_ABSTRACT = ("tion", "sion", "ment", "ness", "ity", "ance", "ence", "ship", "ism", "ing", "logy")
"""Endings of nouns that name no thing."""
_SELF, _OURSELVES = ("i", "me", "myself"), ("we", "us", "ourselves")
_MODALS = {"'ll": "will", "wo": "will", "ca": "can", "'d": "would"}
_NOUNS, _VERBS, _MODIFIERS = ("NOUN", "PROPN"), ("VERB", "AUX"), ("compound", "amod", "nmod")
_SHARING = ("conj", "xcomp", "advcl", "ccomp", "dep", "parataxis")
"""Dependencies of clauses that may share the subject of the one they depend on."""
_CLAUSES = (*_SHARING, "ROOT", "relcl", "acl", "pcomp")


def is_narrated(descriptions: Collection[str]) -> bool:
    """Check whether descriptions are written in the first person."""
    first = sum(1 for text in descriptions if _FIRST_PERSON.search(text))
    return first > FIRST_PERSON_SHARE * len(descriptions)


def head_of(name: str) -> str:
    """Return the head of an entity's name: "cup" of "red cup", "bottle" of "bottle of water"."""
    before, _, _ = name.partition(" of ")
    return before.rsplit(" ", 1)[-1]


def stated_facts(parser: SentenceParser, lines: Sequence[str], known: Known) -> list[StatedFacts]:
    """Return what each line names and states.

    A line that begins with a name and a colon is said by that person. Of languages other than
    English, of which the parser has a pipeline, only entities are read; of others nothing.

    Raises:
        WeightsMissing: the parser's files are not there.
    """
    cut = [_cut(line, known) for line in lines]
    people = {*known.people} - NOT_PEOPLE - {"I"}
    pieces = dict.fromkeys(piece for _, found in cut for piece in found)
    languages = {one: _language_of(one.text, parser) for one in pieces}
    facts: dict[_Piece, StatedFacts] = {}
    for language in sorted({*languages.values()} - {""}):
        own = [one for one in pieces if languages[one] == language]
        texts = [one.text for one in own]
        with parser.parsed(texts, language=language, names=people) as documents:
            for one, document in zip(own, documents, strict=True):
                if language != ENGLISH:
                    facts[one] = StatedFacts(entities=tuple(_foreign_entities(document)))
                elif parser.knows_most(document) or detect_language(one.text):
                    reader = ClauseReader(document, one.speaker, narrated=one.narrated)
                    facts[one] = reader.read()
    return [
        joined_facts(
            [StatedFacts(entities=(_person(speaker),) if speaker else ())]
            + [facts[piece] for piece in found if piece in facts]
        )
        for speaker, found in cut
    ]


def joined_facts(parts: Iterable[StatedFacts]) -> StatedFacts:
    """Return the entities and triples of all parts, in order, each once."""
    entities: dict[str, NamedEntity] = {}
    triples: dict[Triple, None] = {}
    for part in parts:
        for entity in part.entities:
            entities.setdefault(entity.name, entity)
        triples |= dict.fromkeys(part.triples)
    return StatedFacts(entities=tuple(entities.values()), triples=tuple(triples))


class _Piece(NamedTuple):
    """A sentence, who says it, or "", and whether a narrator may tell it without a subject."""

    text: str
    speaker: str
    narrated: bool


def _cut(line: str, known: Known) -> tuple[str, list[_Piece]]:
    """Return who says a line, or "", and its sentences without quotations and asides."""
    match = _SPOKEN.fullmatch(line.strip())
    who, text = (match["who"], match["text"]) if match else ("", line)
    if who in NOT_PEOPLE:
        return "", []
    speaker = "" if who in _KIND_OF_LINE else who
    plain = _FILLERS.sub(" ", _ASIDES.sub(" ", text.replace("’", "'")))
    found = (" ".join(piece.split()) for piece in _PIECES.split(plain))
    return speaker, [
        _Piece(piece[:LONGEST], speaker, known.narrated and not who)
        for piece in found
        if any(map(str.isalpha, piece))
    ]


def _language_of(text: str, parser: SentenceParser) -> str:
    """Return the language that a sentence is to be read in; "" for none."""
    language = detect_language(text)
    if language is None:
        return ENGLISH if sum(map(str.isascii, text)) >= 0.9 * len(text) else ""
    return next((code for code in language.codes if code in parser.languages), "")


def _foreign_entities(document: Doc) -> Iterator[NamedEntity]:
    """Yield who and what a sentence of another language names, as it is written."""
    yield from (_person(name) for name in map(name_of, document) if name)
    for one in document.ents:
        if not any(map(name_of, one)):
            yield NamedEntity(name=one.text, kind=_KINDS.get(one.label_, EntityKind.OBJECT))
    # spaCy finds noun phrases of some languages, from dependencies.
    if document.has_annotation("DEP") and document.vocab.get_noun_chunks:
        for root in (chunk.root for chunk in document.noun_chunks):
            if root.pos_ == "NOUN" and not root.ent_type_:
                yield NamedEntity(name=root.lemma_, kind=EntityKind.OBJECT)


def _person(name: str) -> NamedEntity:
    return NamedEntity(name=name, kind=EntityKind.PERSON)


class ClauseReader:
    """Reads one English sentence.

    Args:
        speaker: who says it; "" for a description. "I" and "we" of speech are the speaker.
        narrated: without a subject it is the narrator's: "Put the cup down."
    """

    def __init__(self, document: Doc, speaker: str = "", *, narrated: bool = False) -> None:
        self._document, self._speaker = document, speaker
        self._narrated = narrated
        self._stated: list[tuple[int, Triple]] = []
        self._entities: dict[str, NamedEntity] = {}

    def read(self) -> StatedFacts:
        """Return what the sentence names and states, in the order of its words."""
        for token in self._document:
            if _heads_phrase(token) and (named := self._entity(token)):
                self._entities.setdefault(named.name, named)
        marks = (one.i for one in self._document if one.lower_ in WORDS["conditions"])
        asked = self._document[-1].text == "?"
        for token in self._document[: 0 if asked else next(marks, None)]:
            if token.pos_ in _VERBS and token.dep_ in _CLAUSES:
                self._clause(token)
            elif token.dep_ in ("nsubj", "dobj") and token.lemma_ not in WORDS["light"]:
                for preposition, place in _prepositions(token):
                    if preposition.partition(" ")[0] in WORDS["at"]:
                        subjects = filter(None, [self._entity(token)])
                        self._state(subjects, f"be {preposition}", self._named(place), place)
        triples = (triple for _, triple in sorted(self._stated, key=lambda pair: pair[0]))
        return StatedFacts(
            entities=tuple(self._entities.values()), triples=tuple(dict.fromkeys(triples))
        )

    def _clause(self, verb: Token) -> None:
        # Check for "continue" of "continue to hold", which is read with "hold".
        introduces = verb.lemma_ in WORDS["phases"] | WORDS["attitudes"] or verb.lower_ == "going"
        told = [one for one in _children(verb, "xcomp") if not _children(one, "nsubj")]
        only_introduces = introduces and any(
            one.tag_ == "VBG" or _is_infinitive(one) for one in told
        )
        outer = None if only_introduces else self._outer(verb)
        if outer is None:
            return
        before, subjects = outer
        if not self._speaker:  # Descriptions tell what happens: "I'll open it".
            before = [word for word in before if word not in ("will", "can")]
        passive, main, objects = _is_passive(verb), verb.lemma_, list(_objects(verb))
        particles = [
            one.lower_
            for one in verb.rights
            if (one.dep_ == "prt" or (one.dep_ == "advmod" and one.lower_ in WORDS["particles"]))
            and one.lower_ not in WORDS["dropped"]
        ]
        for preposition, thing in list(objects):
            if not preposition and _is_light(thing):
                main = thing.lemma_
                objects = [(word, one) for word, one in objects if one != thing]
                objects += _prepositions(thing)
        for preposition, thing in objects:
            named = self._named(thing)
            if passive and thing.head.dep_ == "agent":
                self._state(named, " ".join([*before, verb.lemma_]), subjects, thing)
            elif not passive or preposition or verb.lemma_ in ("name", "call", "give"):
                said = ["be", verb.lower_] if passive else [main]
                predicate = " ".join([*before, *said, *particles, *preposition.split()])
                self._state(subjects, predicate, named, thing)

    def _outer(self, verb: Token) -> tuple[list[str], list[NamedEntity]] | None:
        """Return what is said before a verb, as "not" and "want to", and of whom it is said.

        None where it is not stated: of nobody, or of what is only meant to happen.
        """
        head, kind = verb.head, verb.dep_
        helpers, subjects = _children(verb, "aux", "neg"), _children(verb, "nsubj", "nsubjpass")
        modals = [_MODALS.get(one.lower_, one.lower_) for one in helpers if one.tag_ == "MD"]
        own = ["not"] * any(one.dep_ == "neg" for one in helpers) + modals[:1]
        if _is_infinitive(verb) and kind != "conj":
            introduced = None if subjects else _introduction(verb)
            outer = None if introduced is None else self._outer(head)
            return outer and ([*outer[0], *(introduced or ()), *own], outer[1])
        if subjects or _children(verb, "expl"):
            found = subjects or _children(verb, "attr")
            return own, [one for subject in found for one in self._named(subject)]
        if kind == "acl" and verb.tag_ in ("VBG", "VBN"):
            return own, self._named(head)
        if kind == "pcomp":
            happened = head.lower_ in WORDS["happened"] and head.head.pos_ in _VERBS
            outer = self._outer(head.head) if happened else None
            return outer and (own, outer[1])
        if kind in _SHARING and head.pos_ in _VERBS:
            outer = self._outer(head)
            shared = outer[0] if outer and (kind == "xcomp" or verb.tag_ == "VB") else []
            attitude = kind == "xcomp" and head.lemma_ in WORDS["attitudes"]
            return outer and ([*shared, *([head.lemma_] if attitude else []), *own], outer[1])
        told = self._narrated and kind == "ROOT" and verb.tag_ != "VBZ" and verb.lemma_ != "let"
        return (own, [_person("I")]) if told else None

    def _state(
        self,
        subjects: Iterable[NamedEntity],
        predicate: str,
        targets: Sequence[NamedEntity],
        at: Token,
    ) -> None:
        for subject, target in product(subjects, targets):
            if subject.name != target.name:
                for one in (subject, target):
                    self._entities.setdefault(one.name, one)
                triple = Triple(subject=subject.name, predicate=predicate, object=target.name)
                self._stated.append((at.i, triple))

    def _named(self, token: Token) -> list[NamedEntity]:
        """Return what a noun names, and those joined to it: "Ann and Tasha", "Ann, the host"."""
        joined = [token]
        for one in joined:
            person = bool(name_of(one)) or one.pos_ == "PRON"
            for other in _children(one, "conj", "appos" if one.dep_ in ("attr", "oprd") else ""):
                # "I look at Ann and nod": after a person, a bare noun is rather a verb.
                verb = person and other.dep_ == "conj" and other.tag_ == "NN" and not other.n_lefts
                if name_of(other) or (other.pos_ in (*_NOUNS, "PRON") and not verb):
                    joined.append(other)
        return [named for one in joined if (named := self._entity(one))]

    def _entity(self, token: Token) -> NamedEntity | None:
        """Return what a phrase names, by its head; None if nobody knows or it is nothing."""
        word, lemma = token.lower_, token.lemma_.lower()
        if name := name_of(token):
            return _person(name)
        if word in _SELF or (word in _OURSELVES and self._speaker):
            return _person(self._speaker or "I")
        if word in WORDS["groups"] or word in _OURSELVES:
            name = "we" if word in _OURSELVES else word
            return NamedEntity(name=name, kind=EntityKind.GROUP)
        if token.tag_ in ("WP", "WDT"):
            clause = next((one for one in token.ancestors if one.dep_ == "relcl"), None)
            return self._entity(clause.head) if clause else None
        part = _part(token)
        if part and (token.pos_ not in _NOUNS or lemma in WORDS["no_entities"]):
            return self._entity(part)
        if not WORDS["no_entities"].isdisjoint((word, lemma)) or word in WORDS["dropped"]:
            return None
        if token.dep_ == "acomp":
            return NamedEntity(name=word, kind=EntityKind.CONCEPT, quality=True)
        if word in WORDS["place_adverbs"] or not _is_noun(token):
            place = NamedEntity(name=word, kind=EntityKind.LOCATION)
            return place if word in WORDS["place_adverbs"] else None
        whole = self._entity(part) if part and part.pos_ != "PRON" else None
        name = self._phrase(token) + (f" of {whole.name}" if whole else "")
        return NamedEntity(name=name, kind=_kind(token))

    def _phrase(self, noun: Token) -> str:
        """Return a noun in singular with what describes it, and whose it is: "Ann's red cup"."""
        kept, owner = {noun.i}, ""
        for left in noun.lefts:
            if left.dep_ == "poss" and left.pos_ != "PRON":
                of = self._entity(left)
                owner = f"{of.name}'s " if of else ""
            elif (
                left.dep_ in _MODIFIERS and left.tag_ != "CD" and left.lower_ not in WORDS["vague"]
            ):
                kept |= {one.i for one in left.subtree if one.pos_ not in ("DET", "PRON", "CCONJ")}
        words = []
        for token in self._document[min(kept) : noun.i + 1]:
            as_it_is = token.pos_ == "PROPN" or (token.is_upper and len(token) > 1)
            if token == noun:
                words.append(token.text.rstrip(".") if as_it_is else token.lemma_.lower())
            elif token.i in kept or (token.tag_ == "HYPH" and token.i - 1 in kept):
                words.append(name_of(token) or (token.text if as_it_is else token.lower_))
        return owner + " ".join(words).replace(" - ", "-")


def _children(token: Token, *dependencies: str) -> list[Token]:
    return [one for one in token.children if one.dep_ in dependencies]


def _objects(verb: Token) -> Iterator[tuple[str, Token]]:
    """Yield what a verb is about, each with its preposition or ""."""
    there, bare = bool(_children(verb, "expl")), False
    for token in verb.children:
        kind, word = token.dep_, token.lower_
        # What something is like; "ready to go" is about what may happen.
        quality = kind == "acomp" and token.pos_ == "ADJ" and not _children(token, "xcomp")
        if (there and kind == "attr") or kind == "advmod" or word == "next":
            yield from _prepositions(token)
        elif kind in ("dobj", "attr", "oprd") or quality:
            bare = True
            yield "", token
            yield from (one for one in _prepositions(token) if one[0] in WORDS["directed"])
        elif kind == "dative" and token.pos_ != "ADP":
            yield "to", token
        elif kind == "ccomp" and verb.lemma_ in WORDS["perceived"]:
            yield from (("", one) for one in _children(token, "nsubj"))
        if kind == "advmod" and word in WORDS["place_adverbs"]:
            yield "", token
    yield from _prepositions(verb)
    unsaid = all(one.tag_ not in ("WP", "WDT", "WRB") for one in verb.children)
    if verb.dep_ == "relcl" and unsaid and not bare and not _is_passive(verb):
        yield "", verb.head  # "the box Ann took"


def _prepositions(head: Token) -> Iterator[tuple[str, Token]]:
    """Yield the nouns that prepositions join to a word, each with its preposition."""
    for token in _children(head, "prep", "dative", "agent"):
        word, things = token.lower_, _children(token, "pobj")
        if word == "of" and head.pos_ in _NOUNS:
            continue
        if word == "to" and token.i and token.nbor(-1).lower_ == "next":
            word = "next to"
        for inner in [] if things else _children(token, "prep"):
            word, things = f"{word} {inner.lower_}", _children(inner, "pobj")
        if not things and head.lemma_ in WORDS["perceived"]:  # "listen to Ann speak"
            things = [one for said in _children(token, "pcomp") for one in _children(said, "nsubj")]
        for thing in things:
            part = _part(thing)
            if part and thing.lemma_ in ("front", "top"):
                yield f"{word} {thing.lemma_} of", part
            else:
                yield word, thing


def _part(token: Token) -> Token | None:
    """Return what stands after "of": "water" of "bottle of water"."""
    after = (one for one in _children(token, "prep") if one.lower_ == "of")
    return next((thing for one in after for thing in _children(one, "pobj")), None)


def _heads_phrase(token: Token) -> bool:
    """Check whether a token is the head of a phrase that may name something."""
    kind, head = token.dep_, token.head
    if name_of(token):
        return kind != "compound"
    described = kind in (*_MODIFIERS, "poss") or (kind == "npadvmod" and head.pos_ not in _VERBS)
    if described or _is_light(token) or not (_is_noun(token) or token.pos_ == "PRON"):
        return False
    whole = head.head if kind == "pobj" and head.lower_ == "of" else token
    return whole == token or whole.pos_ not in _NOUNS or whole.lemma_ in WORDS["no_entities"]


def _is_noun(token: Token) -> bool:
    """Check for a noun; a word that the tagger takes for an adjective may stand for one."""
    stands = token.pos_ == "ADJ" and token.dep_ in ("dobj", "pobj", "nsubj", "nsubjpass")
    return stands or token.pos_ in _NOUNS


def _is_light(noun: Token) -> bool:
    """Check for "look" of "take a look at"."""
    return noun.lemma_ in WORDS["light"] and noun.head.lemma_ in WORDS["light_verbs"]


def _is_passive(verb: Token) -> bool:
    return bool(_children(verb, "auxpass")) or (verb.dep_ == "acl" and verb.tag_ == "VBN")


def _is_infinitive(verb: Token) -> bool:
    return any(one.tag_ == "TO" for one in _children(verb, "aux"))


def _introduction(infinitive: Token) -> list[str] | None:
    """Return how a verb before an infinitive is told with it; None if that is only intended."""
    head = infinitive.head
    if infinitive.dep_ not in ("xcomp", "ccomp"):
        return None
    if head.lemma_ in WORDS["attitudes"]:
        return [head.lemma_, "to"]
    if head.lower_ == "going":
        return ["will"]
    return [] if head.lemma_ in WORDS["phases"] else None


def _kind(noun: Token) -> EntityKind:
    head = noun.lemma_.lower()
    if head in WORDS["places"]:
        return EntityKind.LOCATION
    if noun.ent_type_ in _KINDS:
        return _KINDS[noun.ent_type_]
    return EntityKind.CONCEPT if head.endswith(_ABSTRACT) else EntityKind.OBJECT
