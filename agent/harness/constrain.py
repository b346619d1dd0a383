"""Constrain: the rules that an action must keep before it is carried out (SPEC section 2).

Each rule returns the complaint shown to the reasoner, or "".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from domain.asking import Action, Mode
from domain.base import Frozen
from domain.people import TAG
from domain.settings import AskSettings
from domain.trajectory import EvidenceRetrieved, Guarded
from retrieval.terms import STOP, pieces, plain_words

EXAMPLE = 8
"""Words of an example query."""
LOOKS = (Mode.EVENT, Mode.VIDEO, Mode.KEYFRAME)
ID, IDS = 24, 6
"""Limits of the unknown citations quoted in a complaint: characters of each id, and ids."""
_WORD = re.compile(r"[^\W_]+")
_LETTER = re.compile(
    r"(?:(?:the\s+)?(?:correct\s+)?(?:answer|option|choice)(?:\s++is)?\s*+(?::\s*+)?)?"
    r"[\[(]?([a-z])[\])]?[.):]?",
    re.I,
)
_LETTER_AND_TEXT = re.compile(r"(?:option\s+)?\(?([a-z])\s*[).:-]\s*(.+)", re.I | re.S)
_ASKS = re.compile(
    r"(?:what|who|whom|whose|when|where|why|how|which|did|does|do|is|are|was|were|can|could|will"
    r"|would|has|have|had|should)\b",
    re.I,
)


class ActionBounds(Frozen):
    """What the rules look at besides the action.

    ``evidence``: all refs that any search listed; ``tags``: those of people that were shown;
    ``modes``: the available search modes; ``letters``: the options that the subtask is about.
    """

    options: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    subtask: str = ""
    searched: tuple[EvidenceRetrieved, ...] = ()
    evidence: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    forced: Mode | None = None
    modes: tuple[Mode, ...] = tuple(Mode)
    focused: bool = False


def words(text: str) -> list[str]:
    """Split ``text`` into lower-case words; pairs of characters in scripts without spaces."""
    return [piece for word in _WORD.findall(text.casefold()) for piece in pieces(word)]


def is_asked(text: str) -> bool:
    stripped = text.strip()
    return stripped.endswith(("?", "？")) or bool(_ASKS.match(stripped))


def letter(position: int) -> str:
    """Return ``A`` for the first option, ``Z`` for the 26th."""
    return chr(ord("A") + position)


def chosen_letter(text: str, options: Sequence[str]) -> str | None:
    """Return the letter of the option that ``text`` names and nothing else, or None.

    ``C``, ``(c)``, ``C.``, ``Answer: C``, ``C) the option's text`` and the option's text are C;
    ``A nice guess is C`` is nothing.
    """
    stripped = text.strip()
    bare = _LETTER.fullmatch(stripped)
    if bare:
        return _known(bare.group(1), options)
    by_text = [letter(i) for i, o in enumerate(options) if words(o) == words(stripped) and words(o)]
    if len(by_text) == 1:
        return by_text[0]
    both = _LETTER_AND_TEXT.fullmatch(stripped)
    if both and (named_letter := _known(both.group(1), options)):
        named = options[ord(named_letter) - ord("A")]
        return named_letter if words(named) == words(both.group(2)) else None
    return None


def _known(name: str, options: Sequence[str]) -> str | None:
    upper = name.upper()
    return upper if 0 <= ord(upper) - ord("A") < len(options) else None


def jaccard(first: str, second: str) -> float:
    """Return the shared words over all words of both, in [0, 1]."""
    first_words, second_words = set(words(first)), set(words(second))
    return (
        len(first_words & second_words) / len(first_words | second_words)
        if first_words | second_words
        else 1.0
    )


def check(action: Action | None, bounds: ActionBounds, settings: AskSettings) -> Guarded:
    """Return the first rule that ``action`` breaks, or acceptance; of no round yet."""
    rules = [("format", _format(action))]
    chosen = "A question with options needs one of its options, also when memory is thin."
    if action is not None and action.kind == "answer":
        rules += [
            ("search first", "" if bounds.searched else "Search the memory before answering."),
            ("not in memory", chosen if action.not_in_memory and bounds.options else ""),
            ("option", _option(action, bounds)),
            ("citation", _citation(action, bounds)),
            ("tag", _tag(action, bounds)),
        ]
    elif action is not None:
        rules += [
            ("mode", _mode(action, bounds)),
            ("query", _query(action, bounds)),
            ("duplicate", _duplicate(action, bounds, settings)),
        ]
    broken = next(((rule, complaint) for rule, complaint in rules if complaint), None)
    return Guarded(
        accepted=not broken, rule=broken and broken[0], complaint=broken[1] if broken else ""
    )


def _format(action: Action | None) -> str:
    if action is None:
        return "That was no action. Reply with one search (mode and query) or one answer."
    if action.kind == "answer" and not (action.answer.strip() or action.not_in_memory):
        return "The answer is empty. Say the answer, or search."
    return ""


def _option(action: Action, bounds: ActionBounds) -> str:
    if not bounds.options or chosen_letter(action.answer, bounds.options):
        return ""
    last = letter(len(bounds.options) - 1)
    return f"The answer must be exactly one letter from A to {last}, and nothing else."


def _citation(action: Action, bounds: ActionBounds) -> str:
    if action.not_in_memory:
        return ""
    unknown = [ref for ref in action.citations if ref not in bounds.evidence]
    if unknown:
        ids = ", ".join(ref[:ID] for ref in unknown[:IDS])
        return f"Nothing with the id {ids} was retrieved. Cite only what was shown."
    return "" if action.citations else "Cite the ids of the evidence that the answer rests on."


def _tag(action: Action, bounds: ActionBounds) -> str:
    made_up = made_up_tags(action.answer, bounds.tags)
    if bounds.options or not made_up:
        return ""
    return f"Nobody goes by {', '.join(made_up[:IDS])}. Use names, or tags as they were shown."


def made_up_tags(text: str, known: Collection[str]) -> list[str]:
    """Return people's tags in ``text`` that are not among the known ones."""
    tags = dict.fromkeys(match[0] for match in TAG.finditer(text))
    return [tag for tag in tags if tag not in known]


def _mode(action: Action, bounds: ActionBounds) -> str:
    if action.mode is None:
        return "A search needs a mode: " + ", ".join(bounds.modes) + "."
    if action.mode not in bounds.modes:
        return f"There is no mode {action.mode} here: search in mode {' or '.join(bounds.modes)}."
    if bounds.forced is not None and action.mode is not bounds.forced:
        return f"The search is stuck, so this round's mode is {bounds.forced}."
    if action.mode is Mode.NEIGHBOR and not bounds.focused:
        return "There is no segment in focus yet to move from: search in mode event first."
    return ""


def _query(action: Action, bounds: ActionBounds) -> str:
    if action.mode is Mode.NEIGHBOR:
        return "" if action.query.strip() else "Give the label of the neighbour to move to."
    if len(words(action.query)) < 2:
        return f"The query needs at least two words{_such_as(bounds)}."
    if is_asked(action.query):
        advice = "Word the query as a statement of what the memory would say, not as a question"
        return f"{advice}{_such_as(bounds)}."
    if words(action.query) == words(bounds.subtask):
        return f"The query is a copy of the subtask: word it as the memory would{_such_as(bounds)}."
    return ""


def _such_as(bounds: ActionBounds) -> str:
    """Return an example query for the subtask; "" if its words alone would be a copy of it."""
    content_words = [word for word in plain_words(bounds.subtask) if word not in STOP]
    example = " ".join(content_words[:EXAMPLE])
    unusable = (
        len(content_words) < 2 or is_asked(example) or words(example) == words(bounds.subtask)
    )
    return "" if unusable else f', such as "{example}"'


def _duplicate(action: Action, bounds: ActionBounds, settings: AskSettings) -> str:
    """Refuse a near-duplicate of two earlier queries in the same mode; moves have another rule."""
    if action.mode is Mode.NEIGHBOR:
        return ""
    # The same words with another option, or at another time, are another search.
    same = [
        earlier.query
        for earlier in bounds.searched
        if earlier.mode is action.mode
        and earlier.options == bounds.letters
        and earlier.span == action.span
        and jaccard(earlier.query, action.query) > settings.same_query
    ]
    if len(same) < 2:
        return ""
    others = [str(mode) for mode in LOOKS if mode in bounds.modes and mode is not action.mode]
    elsewhere = f"search in mode {' or '.join(others)}, or " if others else "search "
    return (
        f"Nearly this was searched {len(same)} times in mode {action.mode}: "
        f"{elsewhere}for something else."
    )
