"""Routes and tools made from the registry of acts."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, get_args, get_origin

from fastapi import Body, FastAPI, Path, Query
from pydantic import ConfigDict, create_model
from pydantic.fields import FieldInfo
from starlette.responses import JSONResponse

from api.app_state import State
from domain.time import in_seconds
from library.params import OnCommandLine
from library.registry import ACTS, Act

CLOSED = ConfigDict(extra="forbid")


class InSeconds(JSONResponse):
    """JSON with times in seconds."""

    def render(self, content: Any) -> bytes:
        """Write it."""
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
            response_class=InSeconds,
            summary=summary.rstrip("."),
            description=f"{summary}\n{rest}".strip(),
            tags=[act.place.partition(".")[0]],
        )

    described = app.openapi

    def openapi() -> dict[str, Any]:
        schema = described()
        for model in schema["components"]["schemas"].values():
            model |= _described_in_seconds(model)
        return schema

    app.openapi = openapi  # type: ignore[method-assign]


def _described_in_seconds(model: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a described model as ``in_seconds`` writes them."""
    fields = dict[str, Any]()
    for name, field in model.get("properties", {}).items():
        if name == "span":
            fields |= {"start_s": {"type": "number"}, "end_s": {"type": "number"}}
        elif name.endswith("_ms"):
            fields[f"{name[:-3]}_s"] = {**field, "type": "number"}
        else:
            fields[name] = field
    needed = [
        name for name in fields if name in in_seconds(dict.fromkeys(model.get("required", ())))
    ]
    return {"properties": fields, "required": needed} if fields else {}


def _endpoint(act: Act, method: str, path: str) -> Any:
    def endpoint(state: State, **given: Any) -> Any:
        # All of it was checked by FastAPI, with the types of the act.
        arguments = dict(given.pop("body", ())) | given
        return act.function(state.workspace() if act.acts_with_models else state.store, **arguments)

    asked = list[inspect.Parameter]()
    of_body: dict[str, Any] = {}
    for name, one in act.parameters.items():
        hint = act.hints[name]
        kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        looks = next((note for note in notes if isinstance(note, OnCommandLine)), None)
        if looks is not None and looks.only:
            continue
        if f"{{{name}}}" not in path and method != "GET":
            of_body[name] = (hint, ... if one.default is one.empty else one.default)
            continue
        field = next((note for note in notes if isinstance(note, FieldInfo)), FieldInfo())
        limits = [note for note in notes if note is not looks and note is not field]
        place = (Path if f"{{{name}}}" in path else Query)(description=field.description)
        annotation = Annotated[(kind, *limits, *field.metadata, place)]  # type: ignore[valid-type]
        asked.append(one.replace(annotation=annotation, kind=one.KEYWORD_ONLY))
    if of_body:
        model = create_model(f"{act.function.__name__}_body", __config__=CLOSED, **of_body)
        body = inspect.Parameter(
            "body", inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[model, Body()]
        )
        asked.append(body)
    state = inspect.Parameter("state", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=State)
    endpoint.__signature__ = inspect.Signature([state, *asked])  # type: ignore[attr-defined]
    endpoint.__name__ = act.place.replace(".", "_")
    return endpoint
