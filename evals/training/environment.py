"""The environment of the training: a strategy's tools over the view of a question.

TRL's ``GRPOTrainer`` makes instances of a class, resets each with a row of the data set, and
offers its public methods as tools. What they do and take, it reads from signatures and docstrings,
which are made here of the tools' own descriptions and arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Optional

from agent.strategy import RunNamedTool, Strategy, Tool, ToolUse
from domain.asking import Action
from domain.memories import MemoryView
from evals.training.export import found_text
from models.profile import Profile

_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}


class MemoryEnvironment:
    """The memory as one question sees it; tools are added by ``environment_of``."""

    _strategy: Strategy
    _run: RunNamedTool

    def __init__(self) -> None:
        self._view: MemoryView | None = None
        self._seen: frozenset[str] = frozenset()

    def reset(self, view: str, **_: Any) -> None:
        """Begin anew with the view of a question, as JSON."""
        self._view, self._seen = MemoryView.model_validate_json(view), frozenset()


def environment_of(
    strategy: Strategy, profile: Profile, run: RunNamedTool
) -> type[MemoryEnvironment]:
    """Return the class of environments with a strategy's tools.

    Args:
        strategy: whose tools; those that the profile has no models for are not offered.
        profile: the models. Tools ask no language model.
        run: runs tools on the library.
    """
    offered = strategy.tools_for(profile)
    tools = [tool for tool in strategy.switched_on if tool.name in offered]
    body: dict[str, Any] = {tool.name: _method(tool) for tool in tools}
    body |= {"_strategy": strategy, "_run": staticmethod(run)}
    return type(MemoryEnvironment.__name__, (MemoryEnvironment,), body)


def _method(tool: Tool) -> Callable[..., str]:
    """Return the method that uses a tool, with the signature and docstring of its arguments."""

    def use(self: MemoryEnvironment, **arguments: Any) -> str:
        if self._view is None:
            raise ValueError("the environment was not reset")
        given = {name: value for name, value in arguments.items() if value is not None}
        action = Action(kind="search", query=str(given.pop("query", "")), arguments=given)
        use = ToolUse(seen=self._seen, without=self._strategy.without)
        found = self._run(self._strategy, tool, self._view, tool.parse(action), use)
        self._seen |= {one.ref for one in found.evidence}
        return found_text(found.evidence, nothing_close=found.nothing_close)

    method = FunctionType(use.__code__, use.__globals__, tool.name, None, use.__closure__)
    schema = tool.arguments.model_json_schema()
    parameters = [_parameter(name, part, schema) for name, part in schema["properties"].items()]
    ordered = sorted(parameters, key=lambda one: one.default is not inspect.Parameter.empty)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([itself, *ordered], return_annotation=str)
    method.__kwdefaults__ = None
    method.__annotations__ = {one.name: one.annotation for one in ordered} | {"return": str}
    method.__signature__ = signature  # type: ignore[attr-defined]
    # Describe a tool and its arguments in Google's style, which chat templates parse.
    arguments = []
    for name, part in schema["properties"].items():
        text = str(part.get("description") or ("what to look for" if name == "query" else name))
        arguments.append(f"    {name}: {' '.join(text.split())}")
    described = " ".join(tool.description.split())
    listed = "\n".join(arguments)
    method.__doc__ = (
        f"{described}\n\nArgs:\n{listed}\n\nReturns:\n    What was found, with refs and times.\n"
    )
    return method


def _parameter(name: str, part: Mapping[str, Any], schema: Mapping[str, Any]) -> inspect.Parameter:
    """Return the parameter of an argument, given its part of the tool's JSON schema."""
    # The Python type of a part of a JSON schema: its first kind that is not null.
    choices = [one for one in part.get("anyOf", ()) if one.get("type") != "null"]
    chosen = choices[0] if choices else part
    if "$ref" in chosen:
        chosen = schema["$defs"][chosen["$ref"].rsplit("/", 1)[-1]]
    kind = _TYPES.get(str(chosen.get("type", "string")), str)
    required = name in schema.get("required", ())
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=inspect.Parameter.empty if required else None,
        annotation=kind if required else Optional[kind],  # noqa: UP045 - `|` needs a type
    )
