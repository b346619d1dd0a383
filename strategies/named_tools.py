"""The tools of all strategies by name, and one use of a tool outside of a question."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.strategy import RunNamedTool, Strategy, Tool, ToolUse
from domain.asking import Action
from domain.base import Frozen
from domain.errors import Ambiguous, InputError, NotFound
from domain.moments import Retrieval
from retrieval.built_views import unbuilt_note
from retrieval.search_once import view_of_names
from strategies.registry import all_strategies, find_strategy

if TYPE_CHECKING:
    from store.database import Store


class ToolLine(Frozen):
    """A tool of a strategy, with the JSON schema of its arguments."""

    name: str
    strategy: str
    description: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class NamedTool:
    """A tool with the strategy that it is of."""

    strategy: Strategy
    tool: Tool

    @property
    def line(self) -> ToolLine:
        """What lists show of it, with the schema that language models are given."""
        return ToolLine(
            name=self.tool.name,
            strategy=self.strategy.name,
            description=self.tool.description,
            arguments=self.tool.arguments.model_json_schema(),
        )

    def unbuilt_note(self, titles: Sequence[str]) -> str:
        """Return a note about videos of which its strategy's memory is not built; or ""."""
        left_out = self.strategy.windows is None
        return unbuilt_note(titles, self.strategy.memory, left_out=left_out)


def list_tools(strategy: str | None = None) -> tuple[NamedTool, ...]:
    """Return the tools of a strategy, or of all.

    Raises:
        NotFound: there is no such strategy.
    """
    chosen = all_strategies() if strategy is None else (find_strategy(strategy),)
    return tuple(NamedTool(one, tool) for one in chosen for tool in one.switched_on)


def find_tool(name: str, strategy: str | None = None) -> NamedTool:
    """Return the tool of that name, of that strategy if one is named.

    Raises:
        NotFound: there is no such tool or strategy; the message lists those that there are.
        Ambiguous: several strategies have such a tool, and none is named.
    """
    known = list_tools(strategy)
    found = [one for one in known if one.tool.name == name]
    if not found:
        names = ", ".join(one.tool.name for one in known)
        raise NotFound(f"there is no tool {name!r}: use one of {names}")
    if len(found) > 1:
        names = ", ".join(one.strategy.name for one in found)
        raise Ambiguous(f"several strategies have a tool {name!r}: name one of {names}")
    return found[0]


def parse_arguments(given: Sequence[str]) -> dict[str, Any]:
    """Parse ``KEY=VALUE``; a value that is JSON is taken as such, any other as text.

    Raises:
        InputError: one has no ``=``, or a key is given twice.
    """
    arguments: dict[str, Any] = {}
    for one in given:
        key, equals, value = one.partition("=")
        if not equals or not key:
            raise InputError(f"argument {one}: write it as KEY=VALUE")
        if key in arguments:
            raise InputError(f"argument {key} is given twice")
        try:
            arguments[key] = json.loads(value)
        except (ValueError, RecursionError):
            arguments[key] = value
    return arguments


def use_once(
    store: Store,
    run: RunNamedTool,
    named: NamedTool,
    query: str,
    arguments: Mapping[str, Any],
    videos: Sequence[str] = (),
    as_of_ms: int | None = None,
) -> tuple[Retrieval, dict[str, str]]:
    """Use a tool once, without a language model; return the result, and titles of videos by id.

    Args:
        query: what to look for; "" for a tool that needs none.
        arguments: the others by name.
        videos: ids, unambiguous prefixes or titles; all videos if empty.
        as_of_ms: milliseconds of video time; None: the end.

    Raises:
        InputError: an argument is unknown, missing or wrong, or nothing was watched or built yet.
        NotFound: no video has one of the names, or the tool does not find what is named.
        Ambiguous: several videos match a name.
    """
    action = Action(kind="search", query=query, arguments=dict(arguments))
    parsed = named.tool.parse(action)
    view, titles = view_of_names(store, videos, as_of_ms)
    use = ToolUse(without=named.strategy.without)
    return run(named.strategy, named.tool, view, parsed, use), titles
