"""What policies and writers of several strategies share: actions, pictures, replies put right."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel
from typing_extensions import Unpack

from agent.builder import AskOptions
from agent.harness import inform
from agent.model_calls import Calls
from agent.reasoners.port import Conclusion, DecisionContext, Unreadable
from agent.reasoners.replies import with_schema
from agent.strategy import LONGEST_OPTION, PolicyParts
from domain.asking import Action, Question
from domain.people import tags_in
from models.messages import Message, assistant, join_lines, prompts_beside, sanitise, system, user

Reply = TypeVar("Reply", bound=BaseModel)

prompt = prompts_beside(__file__)


class RuleWalk(ABC):
    """A policy whose steps are fixed by rules, and whose answer is by the profile's rules.

    Args:
        parts: what a policy may use.
        notes: what an answer says of how it was found; empty ones are left out.
    """

    def __init__(self, parts: PolicyParts, *notes: str) -> None:
        self._responder, self._without = parts.responder, parts.without
        self.name, self.note = parts.responder.name, _joined(parts, notes)

    @abstractmethod
    def act(self, decision: DecisionContext) -> Action:
        """Take the next step of the walk; then answer."""

    def rescue(self, decision: DecisionContext) -> Action:
        """Return the same: the rules do not depend on replies."""
        return self.act(decision)

    def conclude(self, decision: DecisionContext) -> Conclusion:
        """Answer with the profile's rules."""
        return self._responder.conclude(decision)


class AskingPolicy:
    """What policies share that decide and answer by calls to the language model.

    Args:
        parts: what a policy may use.
        notes: what an answer says of how it was found; empty ones are left out.
        most: pictures of a call at most; None: as many as the settings say.
    """

    def __init__(
        self, parts: PolicyParts, calls: Calls, *notes: str, most: int | None = None
    ) -> None:
        self._calls, self._settings, self._load = calls, parts.settings, parts.load_image
        self._without, self._most = parts.without, parts.settings.images if most is None else most
        self.name, self.note = parts.responder.name, _joined(parts, notes)

    def _ask(
        self,
        decision: DecisionContext,
        purpose: str,
        rules: str,
        page: str,
        schema: type[Reply],
        *,
        shown: inform.LoadedPictures | None = None,
        last: bool = False,
        temperature: float = 0.0,
    ) -> Reply:
        shown = shown or inform.LoadedPictures()
        return self._calls.ask(
            purpose,
            [system(rules), user(page)],
            schema,
            round=decision.round,
            temperature=temperature,
            images=shown.images,
            labels=shown.labels,
            last=last,
        )

    def _pictures(self, decision: DecisionContext, share: int) -> inform.LoadedPictures:
        """Load the latest pictures for a model that sees.

        They take at most one part in ``share`` of the tokens that are left.
        """
        if not self._calls.sees:
            return inform.LoadedPictures()
        most = min(self._most, inform.affordable(decision.tokens, share))
        return inform.load_pictures(decision.pictures[:most], self._load)


def _joined(parts: PolicyParts, notes: Iterable[str]) -> str:
    return " ".join(note for note in (parts.responder.note, *notes) if note)


def ask_sound(
    ask: Callable[..., Reply],
    purpose: str,
    rules: str,
    page: str,
    schema: type[Reply],
    complaints: Callable[[Reply], list[str]],
    *,
    strict: bool = False,
    **options: Unpack[AskOptions],
) -> Reply:
    """Ask for a reply; once more with the complaints if it is not sound.

    Args:
        ask: as ``agent.builder.AskModel.ask``.
        strict: no reply is taken that is not sound; else what of it is sound is chosen by others.

    Raises:
        Unreadable: no reply can be read, or taken.
    """
    messages: list[Message] = [system(rules), user(page)]
    reply: Reply | None = None
    try:
        reply = ask(purpose, messages, schema, **options)
        wrong = complaints(reply)
        messages.append(assistant(reply.model_dump_json()))
    except Unreadable as error:
        wrong = [str(error)]
    if reply is not None and not wrong:
        return reply
    listed = join_lines(f"- {sanitise(one)}" for one in wrong)
    messages.append(user(prompt("repair", complaints=listed)))
    try:
        repaired = ask(f"{purpose}-repair", messages, schema, **options)
    except Unreadable:
        if reply is None or strict:
            raise
        return reply
    if strict and (wrong := complaints(repaired)):
        raise Unreadable(wrong[0])
    return repaired


def made_up(texts: Iterable[str], known: Iterable[str]) -> list[str]:
    """Complain about tags of people that none of the ``known`` texts has."""
    return [f"nobody goes by {tag}" for tag in sorted(tags_in(texts) - tags_in(known))]


def after_complaint(page: str, complaint: str, most: int = inform.LINE) -> str:
    """Return a page with what was wrong with the last reply, if anything, in so many characters."""
    if not complaint:
        return page
    return f"{page}\n\n{prompt('refused', complaint=inform.quote_untrusted(complaint, most))}"


def offering(reply: type[Reply], offered: Collection[str]) -> type[Reply]:
    """Return the schema of a reply with an ``action`` of a kind: only these kinds."""
    form = reply.model_json_schema()
    action = form["properties"]["action"]
    schemas = action["discriminator"]["mapping"]
    for kind in schemas.keys() - set(offered):
        del form["$defs"][schemas.pop(kind).rpartition("/")[2]]
    action["oneOf"] = [one for one in action["oneOf"] if one["$ref"] in schemas.values()]
    return with_schema(reply, form)


def use_tool(tool: str, reason: str, query: str = "", **arguments: Any) -> Action:
    return Action(kind="search", reason=reason, mode=tool, query=query, arguments=arguments)


def options_argument(question: Question) -> dict[str, list[str]]:
    cut = [option[:LONGEST_OPTION] for option in question.options]
    return {"options": cut} if cut else {}


def last_noted(notes: Sequence[str], kind: type[Reply]) -> Reply | None:
    """Return the newest note that is a reply as JSON; None where there is none."""
    for note in reversed(notes):
        if note.startswith("{"):
            return kind.model_validate_json(note)
    return None
