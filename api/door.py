"""Routes and tools made from the registry of acts, and the state that all requests share."""

from __future__ import annotations

import inspect
import pathlib
from contextlib import nullcontext
from dataclasses import dataclass, field
from http import HTTPStatus
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from fastapi import Body, Depends, FastAPI, Path, Query, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo
from starlette.responses import JSONResponse

from api.access import USER_KEY, QuestionSlots
from api.problems import RequestRefused
from domain.base import first_problem
from domain.errors import AccessDenied, InputError
from domain.time import in_seconds
from flows.agent_pool import AgentPool
from library.params import OnCommandLine
from library.registry import ACTS, Act
from models.profile import profile_names
from store.database import MAY_ONLY_LOOK

DEFAULT_QUESTIONS = 4
"""Default number of concurrent questions."""
MAX_SEARCHES = 8
MAX_ESTIMATES = 1
"""Each perceives three clips, with all models of its profile."""

OPEN_TO_VIEWERS = frozenset(
    {
        ("POST", "/questions"),
        ("GET", "/v1/models"),
        ("POST", "/v1/chat/completions"),
        ("GET", "/media/keyframes/{video}/{frame}"),
        ("GET", "/media/frames/{video}/{frame}"),
    }
)
"""Requests of keys that may only look and ask; all others change the library, or show all of it."""

OPEN_ACTS = {tuple(act.route.split(" ")) for act in ACTS if act.viewers}
"""The same of those that are made from the registry."""


@dataclass(frozen=True)
class ApiState(AgentPool):
    """The store and the agents by profile; ``folders`` are those that videos may be added from."""

    folders: tuple[pathlib.Path, ...] = ()
    questions: QuestionSlots = field(default_factory=lambda: QuestionSlots(DEFAULT_QUESTIONS))
    searches: QuestionSlots = field(default_factory=lambda: QuestionSlots(MAX_SEARCHES))
    estimates: QuestionSlots = field(default_factory=lambda: QuestionSlots(MAX_ESTIMATES))

    def profile_name(self, profile: str | None) -> str:
        """Return the profile that a request names, else the configured one; never a path."""
        known = profile_names(self.store.home.config)
        if profile is None or profile in known:
            return profile or self.profile
        detail = f"no profile is called {profile!r}"
        hint = f"leave `profile` out, or name one of: {', '.join(known)}"
        raise RequestRefused(HTTPStatus.NOT_FOUND, "not-found", detail, hint)


def _state(request: Request) -> ApiState:
    """Return the state with what the client's key may see; raise if it may not do the act."""
    whole: ApiState = request.app.state.api_state
    state = whole.for_user(request.scope[USER_KEY])
    route: APIRoute = request.scope["route"]
    act = (request.method, route.path)
    if state is not whole and act not in OPEN_TO_VIEWERS | OPEN_ACTS:
        raise AccessDenied(MAY_ONLY_LOOK)
    return state


State = Annotated[ApiState, Depends(_state)]


CLOSED = ConfigDict(extra="forbid")
Profile = Annotated[
    str | None, Query(max_length=200, description="Set of models; the server's default.")
]


class InSeconds(JSONResponse):
    """JSON with times in seconds."""

    def render(self, content: Any) -> bytes:
        return super().render(in_seconds(content))


def add_acts(app: FastAPI) -> None:
    """Add the routes of all acts, and describe the times of their results in seconds."""
    for act in ACTS:
        if not act.route:
            continue
        method, path = act.route.split(" ")
        summary, _, rest = act.help.partition("\n\nExamples:")[0].partition("\n")
        app.add_api_route(
            path,
            _endpoint(act, method, path),
            methods=[method],
            response_model=act.hints["return"],
            summary=summary.rstrip("."),
            description=f"{summary}\n{rest}".strip(),
            # Routes are listed by the module of their act.
            tags=[act.place.partition(".")[0]],
        )

    described = app.openapi

    def openapi() -> dict[str, Any]:
        is_new = app.openapi_schema is None  # It is kept once it is made.
        schema = described()
        for model in schema["components"]["schemas"].values() if is_new else ():
            describe_in_seconds(model)
        return schema

    app.openapi = openapi  # type: ignore[method-assign]


def describe_in_seconds(model: dict[str, Any]) -> dict[str, Any]:
    """Change the JSON schema of a model, and those in it, to what ``in_seconds`` writes."""
    for inner in model.get("$defs", {}).values():
        describe_in_seconds(inner)
    fields = dict[str, Any]()
    for name, schema in model.get("properties", {}).items():
        if name == "span":
            fields |= {"start_s": {"type": "number"}, "end_s": {"type": "number"}}
        elif name.endswith("_ms"):
            fields[f"{name[:-3]}_s"] = {**schema, "type": "number"}
        else:
            fields[name] = schema
    if fields:
        needed = in_seconds(dict.fromkeys(model.get("required", ())))
        # A span is written as its two ends.
        needed |= dict.fromkeys(["start_s", "end_s"] * ("span" in needed))
        model["properties"], model["required"] = fields, [one for one in fields if one in needed]
    return model


def _has_shape(hint: Any) -> bool:
    """Check whether a value of this type is a model, which FastAPI reads from no address."""
    if isinstance(hint, type):
        return issubclass(hint, BaseModel)
    return get_origin(hint) in (Annotated, Union, UnionType) and any(
        map(_has_shape, get_args(hint))
    )


def _endpoint(act: Act, method: str, path: str) -> Any:
    def endpoint(state: State, **given: Any) -> Any:
        # The rest was checked by FastAPI, with the types of the act.
        for name, adapter in written.items():
            try:
                given[name] = adapter.validate_python(given[name])
            except ValidationError as error:
                raise InputError(first_problem(error, name)) from error
        profile = given.pop("profile", None)
        arguments = {**dict(given.pop("body", ())), **given}
        where: Any = state.store
        if act.where == "workspace":
            where = state.workspace(state.profile_name(profile))
        with state.searches.slot() if act.limited else nullcontext():
            return act.function(where, **arguments)

    keyword = inspect.Parameter.KEYWORD_ONLY
    asked = list[inspect.Parameter]()
    written = dict[str, TypeAdapter[Any]]()  # Shapes that a query writes as text: a span.
    of_body: dict[str, Any] = {}
    for name, one in act.remote.items():
        hint = act.hints[name]
        if f"{{{name}}}" not in path and method != "GET":
            of_body[name] = (hint, ... if one.default is one.empty else one.default)
            continue
        if _has_shape(hint):
            written[name] = TypeAdapter(hint)
        of_value, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        field = next((note for note in notes if isinstance(note, FieldInfo)), FieldInfo())
        limits = [note for note in notes if not isinstance(note, FieldInfo | OnCommandLine)]
        if _has_shape(hint):
            of_value, limits = str | None, []
        place = (Path if f"{{{name}}}" in path else Query)(description=field.description)
        annotation: Any = Annotated[(of_value, *limits, *field.metadata, place)]
        asked.append(one.replace(annotation=annotation, kind=keyword))
    if of_body:
        model = create_model(
            f"{act.function.__name__}_body", __config__=CLOSED, __doc__=act.help, **of_body
        )
        asked.append(inspect.Parameter("body", keyword, annotation=Annotated[model, Body()]))
    if act.where == "workspace":
        asked.append(inspect.Parameter("profile", keyword, default=None, annotation=Profile))
    state = inspect.Parameter("state", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=State)
    endpoint.__signature__ = inspect.Signature([state, *asked])  # type: ignore[attr-defined]
    endpoint.__name__ = act.place.replace(".", "_")
    return endpoint
