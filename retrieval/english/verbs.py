"""Verb groups of an English sentence: "am holding", "did not want to open", "was put"; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from retrieval.english.words import (
    ADVERBS,
    AUXILIARIES,
    BE,
    DO,
    HAVE,
    MODALS,
    NEGATIONS,
    Token,
    lemma,
    listed,
    verb_form,
)

PHASES = frozenset({"start", "begin", "continue", "keep", "resume", "proceed"})
"""Verbs before another that say only that it goes on: "continue to hold" is "hold"."""
ATTITUDES = listed(
    """want try need like love hate prefer plan decide attempt prepare hope intend refuse forget
    stop finish avoid enjoy have"""
)
"""Verbs before another that change what is stated: "want to hold" stays so."""

_BEFORE_ANOTHER = PHASES | ATTITUDES
_HELPING = AUXILIARIES | NEGATIONS
_BETWEEN = ADVERBS - {"left"}
"""Adverbs that may stand before a main verb; "left" is mostly one itself."""
_ALSO_VERBS = frozenset({"left", "like"})
"""Verbs after a subject, though these words are mostly of a closed class."""


@dataclass
class VerbGroup:
    """A main verb in base form, with what changes its meaning, and the token after it."""

    verb: str
    end: int
    passive: bool = False
    before: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The verb with what stands before it: "not want to open"."""
        return " ".join([*self.before, self.verb])


def verb_group_at(tokens: Sequence[Token], start: int) -> VerbGroup | None:
    """Return the verb group that begins at a token; None if there is none."""
    at, auxiliaries, negated = _auxiliaries(tokens, start)
    group = _main_verb(tokens, at, auxiliaries)
    if group is None:
        return None
    group = _with_infinitives(tokens, group)
    modals = [word for word in auxiliaries if word in MODALS]
    group.before[:0] = [*(["not"] if negated else []), *modals[:1]]
    return group


def _auxiliaries(tokens: Sequence[Token], start: int) -> tuple[int, list[str], bool]:
    """Return the token after auxiliaries and adverbs, the auxiliaries, and whether one negates."""
    at, found, negated = start, list[str](), False
    while at < len(tokens) and _before_verb(tokens[at]):
        word = tokens[at].word
        negated = negated or word in NEGATIONS
        if word in AUXILIARIES:
            found.append(word)
        at += 1
        if word in BE and _words(tokens, at, 2) == ["going", "to"] and _is_base(tokens, at + 2):
            found[-1] = "will"
            at += 2
    return at, found, negated


def _before_verb(token: Token) -> bool:
    helps = token.word in _HELPING
    return helps or token.word in _BETWEEN or (token.kinds == {"ADV"} and not token.closed)


def _main_verb(tokens: Sequence[Token], at: int, auxiliaries: list[str]) -> VerbGroup | None:
    last = next((word for word in reversed(auxiliaries) if word not in MODALS), "")
    form = verb_form(tokens[at].word) if is_verb(tokens, at) else ""
    if last in BE:
        return _after_be(tokens, at, form)
    if last in HAVE and not (form in ("past", "base") and _is_past(tokens[at])):
        return VerbGroup("have", at)
    if last in DO and form != "base":
        return VerbGroup("do", at)
    return VerbGroup(lemma(tokens[at].word, "VERB"), at + 1) if form else None


def _after_be(tokens: Sequence[Token], at: int, form: str) -> VerbGroup:
    """Return a progressive or passive verb, or "be" itself."""
    if form == "ing":
        return VerbGroup(lemma(tokens[at].word, "VERB"), at + 1)
    if form and _is_past(tokens[at]):
        return VerbGroup(lemma(tokens[at].word, "VERB"), at + 1, passive=True)
    return VerbGroup("be", at)


def _is_past(token: Token) -> bool:
    """Check whether a word may be a participle; "put" is one, "box" is none."""
    return verb_form(token.word) == "past" or token.kinds == {"VERB"}


def is_verb(tokens: Sequence[Token], at: int) -> bool:
    """Check whether a token can be a main verb."""
    if at >= len(tokens):
        return False
    token = tokens[at]
    if token.word in _ALSO_VERBS:
        return True
    return token.verb and not token.closed and token.word not in ADVERBS


def _is_base(tokens: Sequence[Token], at: int) -> bool:
    return is_verb(tokens, at) and verb_form(tokens[at].word) == "base"


def is_infinitive(tokens: Sequence[Token], at: int) -> bool:
    """Check whether "to" and a verb follow, not "to" and a noun."""
    if _words(tokens, at, 1) != ["to"] or not _is_base(tokens, at + 1):
        return False
    alone = at + 2 >= len(tokens) or tokens[at + 2].mark
    return not (alone and tokens[at + 1].noun)


def _with_infinitives(tokens: Sequence[Token], group: VerbGroup) -> VerbGroup:
    """Go on to the verb that is meant: "started to want to open" is "want to open"."""
    before = group.before
    while not group.passive and group.verb in _BEFORE_ANOTHER:
        after = group.end + 1 if is_infinitive(tokens, group.end) else group.end
        ing = is_verb(tokens, after) and verb_form(tokens[after].word) == "ing"
        if after == group.end and (not ing or group.verb == "have"):
            break
        if group.verb in ATTITUDES:
            before = [*before, group.verb, "to"] if after > group.end else [*before, group.verb]
        group = VerbGroup(lemma(tokens[after].word, "VERB"), after + 1)
    group.before = before
    return group


def _words(tokens: Sequence[Token], at: int, count: int) -> list[str]:
    return [token.word for token in tokens[at : at + count]]
