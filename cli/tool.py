"""``homer tool``: one use of a tool of any strategy, by its name."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.console import say, say_json
from cli.options import (
    SEVERAL_WORDS,
    AsOf,
    Json,
    Profile,
    Videos,
    WordsCommand,
    parse_as_of,
)
from cli.search import say_found, show_cost, show_found
from flows.workspace import open_workspace
from graphs.context_factory import StrategyTools
from retrieval.search_cost import recorded_search
from strategies.named_tools import find_tool, list_tools, parse_arguments, use_once
from views.strategies import ToolLine, tool_lines


def tool(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The tool. Without it, all are listed.")
    ] = "",
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="What to look for, in quotes, if it takes that.")
    ] = "",
    video: Videos = None,
    argument: Annotated[
        list[str] | None,
        typer.Option("--argument", "-a", metavar="KEY=VALUE", help="Another argument. Repeatable."),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option("--strategy", "-s", metavar="NAME", help="The strategy whose tool it is."),
    ] = None,
    as_of: AsOf = None,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Use a tool of a strategy once, and print what it finds.

    Without NAME the tools are listed. Tools are what a strategy looks things up with when it
    answers a question. They work without a language model here.

    \b
    Examples:
      homer tool
      homer tool event "the budget" -v talk
      homer tool NAME "the budget" -v talk -a lines=5 --json
    """
    if not name:
        return _list(strategy, json=json)
    named, arguments = find_tool(name, strategy), parse_arguments(argument or ())
    as_of_ms = parse_as_of(as_of)
    with open_workspace(profile) as workspace:
        run = StrategyTools(workspace.store, workspace.toolbox)
        with recorded_search(workspace.store) as cost:
            found, titles = use_once(
                workspace.store, run, named, query, arguments, video or (), as_of_ms
            )
    if json:
        return say_found(found, cost.usage)
    show_found(found, titles, named.strategy)
    return show_cost(cost.usage)


def _list(strategy: str | None, *, json: bool) -> None:
    lines = tool_lines(list_tools(strategy))
    if json:
        return say_json([line.model_dump(mode="json") for line in lines])
    for line in lines:
        say(f"{line.name} ({line.strategy}): {line.description}")
        say(f"  arguments: {_described(line)}")
    return None


def _described(line: ToolLine) -> str:
    """Return the arguments in words, those that are needed first."""
    properties, needed = line.arguments["properties"], line.arguments.get("required", [])
    optional = [key for key in properties if key not in needed]
    return ", ".join([*needed, *(f"[{key}]" for key in optional)])


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=WordsCommand, context_settings=SEVERAL_WORDS)(tool)
