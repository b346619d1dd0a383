"""What the policies of several strategies share: their actions, pictures and answers."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from agent.builder import AskModel
from agent.harness.inform import LoadedPictures, LoadImage, affordable, load_pictures
from agent.model_calls import Calls
from agent.reasoners.port import Conclusion, DecisionContext, Unreadable
from agent.strategy import LONGEST_OPTION, PolicyParts
from domain.asking import Action, Question
from models.messages import Message, assistant, system, user

Reply = TypeVar("Reply", bound=BaseModel)


class RuleWalk(ABC):
    """A policy whose steps are fixed by rules, and whose answer is by the profile's rules.

    Args:
        parts: what a policy may use.
        notes: what an answer says of how it was found; empty ones are left out.
    """

    def __init__(self, parts: PolicyParts, *notes: str) -> None:
        self._responder, self._without = parts.responder, parts.without
        self.name = parts.responder.name
        self.note = " ".join(note for note in (parts.responder.note, *notes) if note)

    @abstractmethod
    def act(self, decision: DecisionContext) -> Action:
        """Take the next step of the walk; then answer."""

    def rescue(self, decision: DecisionContext) -> Action:
        """Return the same: the rules do not depend on replies."""
        return self.act(decision)

    def conclude(self, decision: DecisionContext) -> Conclusion:
        """Answer with the profile's rules."""
        return self._responder.conclude(decision)


def ask_sound(
    model: AskModel,
    repair_page: Callable[[Iterable[str]], str],
    purpose: str,
    rules: str,
    page: str,
    schema: type[Reply],
    complaints: Callable[[Reply], list[str]],
) -> Reply:
    """Ask for a reply; once more with the complaints if it is not sound."""
    messages: list[Message] = [system(rules), user(page)]
    try:
        reply = model.ask(purpose, messages, schema)
    except Unreadable as error:
        repair = user(repair_page([str(error)]))
        return model.ask(f"{purpose}-repair", [*messages, repair], schema)
    if not (wrong := complaints(reply)):
        return reply
    turns = [*messages, assistant(reply.model_dump_json()), user(repair_page(wrong))]
    try:
        return model.ask(f"{purpose}-repair", turns, schema)
    except Unreadable:
        return reply


def use_tool(tool: str, reason: str, query: str = "", **arguments: Any) -> Action:
    """Return the action that uses a tool."""
    return Action(kind="search", reason=reason, mode=tool, query=query, arguments=arguments)


def options_argument(question: Question) -> dict[str, list[str]]:
    """Return the argument with the options of a question; empty where it has none."""
    cut = [option[:LONGEST_OPTION] for option in question.options]
    return {"options": cut} if cut else {}


def pictures_to_send(
    calls: Calls, decision: DecisionContext, most: int, share: int, load: LoadImage
) -> LoadedPictures:
    """Load the latest pictures for a model that sees.

    Args:
        decision: what the policy decides on.
        most: pictures at most.
        share: they take at most one part in so many of the tokens that are left.
        load: loads the file of a picture.
    """
    if not calls.sees:
        return LoadedPictures()
    return load_pictures(decision.pictures[: min(most, affordable(decision.tokens, share))], load)


def last_noted(notes: Sequence[str], kind: type[Reply]) -> Reply | None:
    """Return the newest note that is a reply as JSON; None where there is none."""
    for note in reversed(notes):
        if note.startswith("{"):
            return kind.model_validate(json.loads(note))
    return None
