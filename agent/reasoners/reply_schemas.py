"""JSON schemas that a model is held to, no wider than what the guard accepts.

Only the schema sent to a server is narrowed; replies are read and checked as usual. Remote servers,
which cache each schema, get few different ones; a model in this process takes any, so its schema
lists the very ids that it may cite.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from string import ascii_uppercase
from typing import Any, TypeVar

from pydantic import BaseModel

from agent.reasoners.port import DecisionContext
from agent.reasoners.replies import ActReply, AssessReply, ConcludeReply, LookReply, TimedActReply
from domain.asking import Mode
from domain.ledger import refs

ANSWERING = ("answer", "citations", "support", "not_in_memory")
"""The fields of a step that a search does not use."""
Form = TypeVar("Form", bound=BaseModel)

LONGEST = 160
"""Characters of a text that a model in this process may write."""


def act_form(decision: DecisionContext, narrow: bool) -> type[ActReply]:
    """Return the schema of a step: no answer before a search, a forced mode, a valid option."""
    searched = bool(decision.steps)
    # NEIGHBOR needs a focus to move from.
    available = [one for one in decision.modes if decision.focus or one is not Mode.NEIGHBOR]
    modes = [str(decision.forced or mode) for mode in available]
    fields: dict[str, Any] = {
        "action": one_of(["search", "answer"] if searched else ["search"]),
        "mode": one_of(sorted(set(modes))),
    }
    if decision.question.options:
        fields["answer"] = one_of(["", *_letters(decision)])
        fields["not_in_memory"] = {"type": "boolean", "enum": [False]}
    if narrow:
        fields |= cited("citations", sorted(refs(decision.ledger)))
    reply = ActReply if narrow else TimedActReply
    return narrowed(reply, fields, narrow, () if searched else ANSWERING)


def assess_form(
    decision: DecisionContext, narrow: bool, images: Sequence[str] = ()
) -> type[AssessReply]:
    """Return the schema of an assessment: which subtasks, by which evidence.

    With refs of ``images`` that are shown it also asks what is seen on them.
    """
    reply = LookReply if images else AssessReply
    if not narrow:
        return reply
    form = reply.model_json_schema()
    if images:
        form["$defs"]["SeenReply"]["properties"]["image"] = one_of(images)
    claim = form["$defs"]["ResolutionReply"]["properties"]
    claim["subtask"] = one_of([s.id for s in decision.ledger.subtasks])
    claim |= cited("evidence", [e.ref for e in decision.found.evidence] if decision.found else [])
    return with_schema(reply, _shortened(form))


def conclude_form(decision: DecisionContext, narrow: bool) -> type[ConcludeReply]:
    """Return the schema of the final answer: one of the options, if there are any."""
    fields: dict[str, Any] = {}
    if decision.question.options:
        fields["option"] = one_of(_letters(decision))
        fields["not_in_memory"] = {"type": "boolean", "enum": [False]}
    if narrow:
        fields |= cited("citations", [e.ref for e in decision.evidence])
    return narrowed(ConcludeReply, fields, narrow)


def _letters(decision: DecisionContext) -> list[str]:
    return list(ascii_uppercase[: len(decision.question.options)])


def one_of(values: Sequence[str]) -> dict[str, Any]:
    """Return the schema of a text that is one of these."""
    return {"type": "string", "enum": list(values)}


def cited(name: str, known: Sequence[str]) -> dict[str, Any]:
    """Return a list schema for these ids; an empty list if there are none."""
    most = min(4, len(known))
    items = one_of(known) if known else {"type": "string"}
    return {name: {"type": "array", "items": items, "maxItems": most, "minItems": min(1, most)}}


def narrowed(
    reply: type[Form], fields: dict[str, Any], narrow: bool, without: Collection[str] = ()
) -> type[Form]:
    """Return ``reply`` with other schemas for some fields, all of them required."""
    form = reply.model_json_schema()
    for name in without:
        del form["properties"][name]
    for name, field in fields.items():
        if name in without:
            continue
        labels = {
            k: v for k, v in form["properties"][name].items() if k in ("title", "description")
        }
        form["properties"][name] = labels | field
    if fields:
        form["required"] = list(form["properties"])
    return with_schema(reply, _shortened(form) if narrow else form)


def with_schema(reply: type[Form], form: dict[str, Any]) -> type[Form]:
    """Return a subclass of ``reply`` whose schema is ``form``."""

    class WithSchema(reply):  # type: ignore[misc, valid-type]
        @classmethod
        def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
            return form

    WithSchema.__name__, WithSchema.__doc__ = reply.__name__, reply.__doc__
    return WithSchema


def with_short_texts(reply: type[Form], narrow: bool) -> type[Form]:
    """Return ``reply`` with texts of limited length, for a model that does not stop by itself."""
    return with_schema(reply, _shortened(reply.model_json_schema())) if narrow else reply


def _shortened(form: Any) -> Any:
    """Return ``form`` with a length limit on every free text."""
    if isinstance(form, list):
        return [_shortened(part) for part in form]
    if not isinstance(form, dict):
        return form
    free = form.get("type") == "string" and "enum" not in form
    limit = {"maxLength": LONGEST} if free else {}
    return {name: _shortened(part) for name, part in form.items()} | limit
