"""The forms that a model is held to, no wider than what the guard would accept.

Only the schema that a server is told is narrowed; what comes back is read and checked as ever. Few
different forms are made for servers elsewhere, which keep each one; a model in this process takes
any, so it is told the very ids that it may cite.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from string import ascii_uppercase
from typing import Any, TypeVar

from pydantic import BaseModel

from agent.reasoners.port import DecisionContext
from agent.reasoners.replies import ActReply, AssessReply, ConcludeReply
from domain.asking import Mode
from domain.ledger import refs

ANSWERING = ("answer", "citations", "support", "not_in_memory")
"""The fields of a step that a search has no use for."""
Form = TypeVar("Form", bound=BaseModel)

LONGEST = 160
"""Characters of a text that a model in this process may write."""


def act_form(turn: DecisionContext, narrow: bool) -> type[ActReply]:
    """One step: no answer before a search, a forced mode, one of the options."""
    searched = bool(turn.steps)
    modes = [str(turn.forced or mode) for mode in _there(turn)]
    fields: dict[str, Any] = {
        "action": _one_of(["search", "answer"] if searched else ["search"]),
        "mode": _one_of(sorted(set(modes))),
    }
    if turn.question.options:
        fields["answer"] = _one_of(["", *_letters(turn)])
        fields["not_in_memory"] = {"type": "boolean", "enum": [False]}
    if narrow:
        fields |= _cited("citations", sorted(refs(turn.ledger)))
    return _narrowed(ActReply, fields, narrow, () if searched else ANSWERING)


def _there(turn: DecisionContext) -> list[Mode]:
    """The modes that a search may be in: there must be somewhere to move from."""
    return [mode for mode in turn.modes if turn.focus or mode is not Mode.NEIGHBOR]


def assess_form(turn: DecisionContext, narrow: bool) -> type[AssessReply]:
    """What a search settles: which subtasks, by what it showed."""
    if not narrow:
        return AssessReply
    form = AssessReply.model_json_schema()
    claim = form["$defs"]["ResolutionReply"]["properties"]
    claim["subtask"] = _one_of([s.id for s in turn.ledger.subtasks])
    claim |= _cited("evidence", [e.ref for e in turn.found.evidence] if turn.found else [])
    return told(AssessReply, _shortened(form))


def conclude_form(turn: DecisionContext, narrow: bool) -> type[ConcludeReply]:
    """The final answer: one of the options, if there are any."""
    fields: dict[str, Any] = {}
    if turn.question.options:
        fields["option"] = _one_of(_letters(turn))
        fields["not_in_memory"] = {"type": "boolean", "enum": [False]}
    if narrow:
        fields |= _cited("citations", [e.ref for e in turn.evidence])
    return _narrowed(ConcludeReply, fields, narrow)


def _letters(turn: DecisionContext) -> list[str]:
    return list(ascii_uppercase[: len(turn.question.options)])


def _one_of(values: Sequence[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def _cited(name: str, known: Sequence[str]) -> dict[str, Any]:
    """A list of these ids; an empty one where there are none."""
    most = min(4, len(known))
    items = _one_of(known) if known else {"type": "string"}
    return {name: {"type": "array", "items": items, "maxItems": most, "minItems": min(1, most)}}


def _narrowed(
    reply: type[Form], fields: dict[str, Any], narrow: bool, without: Collection[str] = ()
) -> type[Form]:
    """``reply`` with other words to the server about some of its fields, all of them required."""
    form = reply.model_json_schema()
    for name in without:
        del form["properties"][name]
    for name, said in fields.items():
        if name in without:
            continue
        kept = {k: v for k, v in form["properties"][name].items() if k in ("title", "description")}
        form["properties"][name] = kept | said
    if fields:
        form["required"] = list(form["properties"])
    return told(reply, _shortened(form) if narrow else form)


def told(reply: type[Form], form: dict[str, Any]) -> type[Form]:
    """``reply``, of which servers are told ``form``."""

    class Told(reply):  # type: ignore[misc, valid-type]
        @classmethod
        def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
            return form

    Told.__name__, Told.__doc__ = reply.__name__, reply.__doc__
    return Told


def short(reply: type[Form], narrow: bool) -> type[Form]:
    """``reply`` with texts of limited length, for a model that does not stop by itself."""
    return told(reply, _shortened(reply.model_json_schema())) if narrow else reply


def _shortened(form: Any) -> Any:
    """``form`` with a limit to every text that is not one of a few."""
    if isinstance(form, list):
        return [_shortened(part) for part in form]
    if not isinstance(form, dict):
        return form
    free = form.get("type") == "string" and "enum" not in form
    limit = {"maxLength": LONGEST} if free else {}
    return {name: _shortened(part) for name, part in form.items()} | limit
