"""Commands made from the registry of acts: arguments from signatures, help from docstrings."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from cli.options import Json, Profile
from cli.render import render
from cli.search import show_cost
from flows.workspace import open_workspace
from library.params import OnCommandLine
from library.registry import ACTS, GUIDES, Act
from retrieval.search_cost import recorded_search
from store.database import open_store
from store.home import Home


def register(app: typer.Typer, name: str) -> None:
    """Add the command of that name, or the group, ``alert``, that lists without a command."""
    acts = {act.command: act for act in ACTS if act.command.split(" ")[0] == name}
    if name in acts:
        needs = any(one.default is one.empty for one in acts[name].parameters.values())
        app.command(name, no_args_is_help=needs)(command_of(acts[name]))
        return
    group = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
    for words, act in acts.items():
        needs = any(one.default is one.empty for one in act.parameters.values())
        group.command(words.partition(" ")[2], no_args_is_help=needs)(command_of(act))

    def list_by_default(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            command_of(acts[f"{name} list"])()

    group.callback()(list_by_default)
    app.add_typer(group, name=name, help=GUIDES[name])


def command_of(act: Act) -> Any:
    """Return an act as a function for Typer."""

    def command(profile: str | None = None, json: bool = False, **given: Any) -> None:
        if not act.acts_with_models:
            with open_store(Home.default()) as store:
                return render(act.call(store, given), json=json)
        with open_workspace(profile) as workspace:
            with recorded_search(workspace.store) as cost:
                result = act.call(workspace, given)
            render(result, json=json)
            show_cost(cost.usage)
        return None

    parameters = [
        one.replace(annotation=_for_typer(act, name, one), kind=one.POSITIONAL_OR_KEYWORD)
        for name, one in act.parameters.items()
    ]
    shared: dict[str, Any] = {"profile": Profile} if act.acts_with_models else {}
    if act.hints["return"] is not str:
        shared["json"] = Json
    parameters += [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None if name == "profile" else False,
            annotation=option,
        )
        for name, option in shared.items()
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    # Typer reads the types of a function from here, and its help from the docstring.
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    command.__doc__ = act.help.replace("\n\nExamples:", "\n\n\b\nExamples:")
    return command


def _for_typer(act: Act, name: str, parameter: inspect.Parameter) -> Any:
    """Return a parameter's type as Typer takes it: the act's own model checks the value."""
    hint = act.hints[name]
    kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    field = next((one for one in notes if isinstance(one, FieldInfo)), FieldInfo())
    looks = next((one for one in notes if isinstance(one, OnCommandLine)), OnCommandLine())
    is_needed = parameter.default is parameter.empty
    plain = bool if kind is bool else list[str] if get_origin(kind) in (list, tuple) else str
    metavar = looks.metavar or (None if plain is bool else name.upper())
    if is_needed or looks.argument:
        shown = typer.Argument(metavar=metavar, help=field.description, show_default=False)
    else:
        flag = f"--{name.replace('_', '-')}"
        shown = typer.Option(
            *(looks.flags or (flag,)),
            metavar=metavar,
            help=field.description,
            show_default=isinstance(parameter.default, int | float) and plain is not bool,
        )
    return Annotated[plain if is_needed or plain is bool else plain | None, shown]
