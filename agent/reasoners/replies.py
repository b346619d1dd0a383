"""What a language model is asked to reply with, and how that becomes the machine's own words.

The JSON schemas that it is held to are no wider than what the guard accepts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from string import ascii_uppercase
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, JsonValue, model_validator

from agent.harness.inform import quote_untrusted
from agent.reasoners.port import Assessment, Conclusion, DecisionContext, Unreadable
from domain.asking import IMAGE_KINDS, REF_KINDS, Action, Mode, Support
from domain.ledger import Edits, Rewrite, SubtaskDraft, refs
from domain.time import parse_clock_span
from domain.trajectory import ImageNote, Resolution
from domain.words import make_storable
from models.messages import prompts_beside

prompt = prompts_beside(__file__)

FEW: dict[str, JsonValue] = {"maxItems": 5}
SEVERAL: dict[str, JsonValue] = {"maxItems": 8}
"""Told to servers that can hold a model to it, since weak models do not stop; not checked here."""
_REF = re.compile(rf"\b([{REF_KINDS}]\d+)\b")
_IMAGE = re.compile(rf"\b[{''.join(IMAGE_KINDS)}]\d+\b")
IMAGE_NOTE = 240
"""Characters of what is seen on one image."""
_SUBTASK = re.compile(r"\bt?([1-9]\d*)\b", re.I)


def refs_in(texts: list[str]) -> tuple[str, ...]:
    """Extract ids from a model's citations: ``[m12]``, ``m12, m13`` and ``m12`` alike."""
    refs = [ref for text in texts for ref in _REF.findall(text)]
    return tuple(dict.fromkeys(refs)) or tuple(text for text in texts if text.strip())


def subtasks_in(texts: list[str]) -> tuple[str, ...]:
    """Extract the ids of subtasks: ``t1``, ``T1``, ``1`` and ``after t1`` alike."""
    return tuple(f"t{number}" for text in texts for number in _SUBTASK.findall(text))


def _listed(value: Any) -> Any:
    """Wrap a single value in a list, and turn numbers into texts."""
    things = value if isinstance(value, list) else [value]
    return [str(item) if isinstance(item, int | float) else item for item in things]


def _mode(value: Any) -> Any:
    """Normalise a mode: capitals, British spelling, or among other words."""
    if not isinstance(value, str):
        return value
    text = value.lower().replace("neighbour", "neighbor")
    return next((mode.value for mode in Mode if mode.value in text), None)


def _id(text: str) -> str:
    """Return the id of the single subtask named; otherwise the text, which is then refused."""
    named = subtasks_in([text])
    return named[0] if len(named) == 1 else text.strip()


def _numbers(value: Any) -> Any:
    """Parse shares, percentages too; empty if any cannot be parsed."""
    things = value if isinstance(value, list) else [value]
    try:
        read = [float(str(item).rstrip("% ")) for item in things]
    except ValueError:
        return []
    return [min(1.0, max(0.0, item / 100 if item > 1 else item)) for item in read]


def support_in(refs: tuple[str, ...], scores: list[float]) -> tuple[Support, ...]:
    """Pair each ref with its support, if there is a number for each."""
    if len(refs) != len(scores):
        return ()
    return tuple(Support(ref=ref, score=score) for ref, score in zip(refs, scores, strict=True))


Shares = Annotated[list[float], BeforeValidator(_numbers)]
SUPPORTS = "for each of these ids, in their order, how well it alone supports the answer, 0 to 1"
Text = Annotated[str, BeforeValidator(lambda said: _listed(said)[0] if said else "")]
Texts = Annotated[list[str], BeforeValidator(_listed)]


class BaseReply(BaseModel):
    """A reply; a field that is null is one that was left out."""

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: item for name, item in value.items() if item is not None}


class SubtaskReply(BaseReply):
    """A subtask of a plan."""

    text: str = Field(description="one atomic thing to find out")
    depends: Texts = Field(
        default_factory=list, description="ids of earlier subtasks: t1", json_schema_extra=FEW
    )

    def draft(self) -> SubtaskDraft:
        return SubtaskDraft(text=self.text, depends=subtasks_in(self.depends))


Drafts = list[
    Annotated[
        SubtaskReply,
        BeforeValidator(lambda value: {"text": value} if isinstance(value, str) else value),
    ]
]


class PlanReply(BaseReply):
    """A plan."""

    subtasks: Drafts = Field(json_schema_extra=FEW)


class ActReply(BaseReply):
    """One step."""

    reason: str = Field(default="", description="why, in one sentence")
    action: Literal["search", "answer"]
    mode: Annotated[
        Literal["event", "video", "neighbor", "keyframe"] | None, BeforeValidator(_mode)
    ] = None
    query: str = Field(default="", description="for a search: what memory would say")
    answer: str = Field(default="", description="for an answer: the letter, or the sentence")
    citations: Texts = Field(
        default_factory=list, description="ids of evidence: m12", json_schema_extra=SEVERAL
    )
    support: Shares = Field(default_factory=list, description=SUPPORTS, json_schema_extra=SEVERAL)
    not_in_memory: bool = False

    @model_validator(mode="before")
    @classmethod
    def _named_by_mode(cls, value: Any) -> Any:
        """Normalise the action's spelling; an action that is a mode is a search in it."""
        if not isinstance(value, dict) or not isinstance(value.get("action"), str):
            return value
        action = value["action"].strip().lower()
        if action in list(Mode):
            return {**value, "action": "search", "mode": value.get("mode") or action}
        return {**value, "action": action}

    @classmethod
    def plain_text_protocol(cls) -> str:
        """Return the text protocol, for a server that enforces no schema."""
        return prompt("act_lines")

    @classmethod
    def parse_plain_text(cls, text: str) -> dict[str, Any] | None:
        return read_lines(text)

    def decision(self) -> Action:
        cited = refs_in(self.citations)
        return Action(
            kind=self.action,
            reason=self.reason,
            mode=Mode(self.mode) if self.mode else None,
            query=self.query.strip(),
            answer=self.answer.strip(),
            citations=cited,
            support=support_in(cited, self.support),
            not_in_memory=self.not_in_memory,
        )


class TimedActReply(ActReply):
    """One step."""

    at: Text = Field(
        default="", description="for keyframe: the time to look at, if one is named: 12:30"
    )

    def decision(self) -> Action:
        """Return the action for the machine.

        Raises:
            Unreadable: what should be a time is none.
        """
        action = super().decision()
        looks = action.kind == "search" and action.mode is Mode.KEYFRAME and self.at.strip()
        if not looks:
            return action
        try:  # A time is a second long.
            span = parse_clock_span(self.at.strip(" []()."))
        except ValueError as error:
            message = f"{self.at[:40]!r} is no time: say 12:30, or 12:30-12:50."
            raise Unreadable(message) from error
        return action.model_copy(update={"span": span})


class ResolutionReply(BaseReply):
    """A subtask that is answered."""

    subtask: Text = Field(description="its id: t1")
    answer: str
    evidence: Texts = Field(
        default_factory=list, description="ids that support it: m12", json_schema_extra=SEVERAL
    )
    support: Shares = Field(default_factory=list, description=SUPPORTS, json_schema_extra=SEVERAL)

    def resolution(self) -> Resolution:
        refs = refs_in(self.evidence)
        return Resolution(
            subtask=_id(self.subtask),
            answer=self.answer,
            refs=refs,
            support=support_in(refs, self.support),
        )


class AssessReply(BaseReply):
    """What a retrieval settles."""

    resolved: list[ResolutionReply] = Field(default_factory=list, json_schema_extra=FEW)
    reopened: Texts = Field(
        default_factory=list, description="ids of subtasks", json_schema_extra=FEW
    )

    def assessment(self) -> Assessment:
        return Assessment(
            resolved=tuple(reply.resolution() for reply in self.resolved),
            reopened=tuple(_id(name) for name in self.reopened),
        )


class SeenReply(BaseReply):
    """What is seen on one image."""

    image: Text = Field(description="its id: k12")
    text: Text = Field(description="what you see there, in a sentence")

    def notes(self) -> tuple[ImageNote, ...]:
        """Return the image note for the machine; none where no image or nothing is named."""
        named = _IMAGE.findall(self.image)
        text = quote_untrusted(make_storable(self.text), IMAGE_NOTE)
        return tuple(ImageNote(ref=ref, text=text) for ref in named[:1] if text)


class LookReply(AssessReply):
    """What a retrieval settles, and what its images show."""

    seen: list[SeenReply] = Field(
        default_factory=list,
        description="what you see on the images that bears on a subtask",
        json_schema_extra=SEVERAL,
    )

    def assessment(self) -> Assessment:
        seen = tuple(one for reply in self.seen for one in reply.notes())
        return super().assessment().model_copy(update={"seen": seen})


class RewriteReply(BaseReply):
    """A subtask worded anew."""

    id: Text
    text: str


class ReplanReply(BaseReply):
    """A repair of the plan."""

    rewrite: list[RewriteReply] = Field(default_factory=list, json_schema_extra=FEW)
    add: Drafts = Field(default_factory=list, json_schema_extra=FEW)
    abandon: Texts = Field(default_factory=list, json_schema_extra=FEW)

    def edits(self) -> Edits:
        return Edits(
            rewrite=tuple(Rewrite(id=_id(r.id), text=r.text) for r in self.rewrite),
            add=tuple(draft.draft() for draft in self.add),
            abandon=tuple(_id(name) for name in self.abandon),
        )


class ConcludeReply(BaseReply):
    """The final answer."""

    comparison: str = Field(default="", description="how the evidence bears on each option")
    option: str | None = Field(default=None, description="one letter, if there are options")
    answer: str = ""
    citations: Texts = Field(
        default_factory=list, description="ids of evidence: m12", json_schema_extra=SEVERAL
    )
    support: Shares = Field(default_factory=list, description=SUPPORTS, json_schema_extra=SEVERAL)
    not_in_memory: bool = False

    def conclusion(self) -> Conclusion:
        cited = refs_in(self.citations)
        return Conclusion(
            text=self.answer.strip(),
            option=self.option.strip() if self.option and self.option.strip() else None,
            refs=cited,
            support=support_in(cited, self.support),
            not_in_memory=self.not_in_memory,
        )


_LINE = re.compile(
    r"^[\s*#>_-]*(?:\d+[.)]\s*)?(reason(?:ing)?|thought|action|content)[*_\s]*[:：][*_]*(.*)",
    re.I,
)
_MODE = re.compile(r"\W*\b(event|video|neighbou?r|keyframe)s?\b(?:\s+mode)?\W*", re.I)
_KIND = re.compile(r"\W*(search|answer)\w*\b\W*", re.I)
_ONE = rf"[{REF_KINDS}]\d+"
_CITED = re.compile(rf"[\[(]\s*{_ONE}(?:\s*[,;]\s*{_ONE})*\s*[\])]", re.I)
_EVIDENCE_REF = re.compile(rf"\b{_ONE}\b", re.I)
_MISSING = re.compile(r"\W*not\s+in\s+(?:the\s+)?memory\b", re.I)


def read_lines(text: str) -> dict[str, Any] | None:
    """Parse an action from plain lines; None if no line names the action."""
    # The text after each name, over all its lines; the first of each counts.
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.rpartition("</think>")[2].splitlines():
        match = _LINE.match(line)
        if match is None:
            current.append(line)
            continue
        current = [match[2]]
        found.setdefault(match[1].lower(), current)
    parts = {name: " ".join(" ".join(lines).split()) for name, lines in found.items()}
    kind = _KIND.match(parts.get("action", ""))
    if kind is None:
        return None
    reason = parts.get("reason") or parts.get("thought") or parts.get("reasoning") or ""
    content = parts.get("content") or parts["action"][kind.end() :]
    read = {"reason": reason, "action": kind[1].lower()}
    if kind[1].lower() == "search":
        mode = _MODE.match(content)
        query = content[mode.end() :] if mode else content
        named = mode[1].lower().replace("neighbour", "neighbor") if mode else None
        return {**read, "mode": named, "query": query.strip(" \"'`()[]*")}
    cited = _CITED.findall(content)
    return {
        **read,
        "answer": _CITED.sub("", content).strip(" \"'`*"),
        "citations": _EVIDENCE_REF.findall(" ".join(cited).lower()),
        "not_in_memory": bool(_MISSING.match(content)),
    }


# Only the schema sent to a server is narrowed; replies are read and checked as usual. Remote
# servers, which cache each schema, get few different ones; a model in this process takes any, so
# its schema lists the very ids that it may cite.


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
        fields["answer"] = one_of(["", *ascii_uppercase[: len(decision.question.options)]])
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
        fields["option"] = one_of(ascii_uppercase[: len(decision.question.options)])
        fields["not_in_memory"] = {"type": "boolean", "enum": [False]}
    if narrow:
        fields |= cited("citations", [e.ref for e in decision.evidence])
    return narrowed(ConcludeReply, fields, narrow)


def one_of(values: Sequence[str]) -> dict[str, Any]:
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
