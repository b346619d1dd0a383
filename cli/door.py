"""Commands made from the registry of acts: arguments from signatures, help from docstrings."""

from __future__ import annotations

import inspect
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from threading import Event, current_thread, main_thread
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic.fields import FieldInfo
from typer.core import TyperGroup

from cli.commands import SEVERAL_WORDS, Json, Profile, WordsCommand
from cli.console import confirm, meter, note
from library.params import agreed
from library.registry import ACTS, GUIDES, Act
from store.home import Home

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Also print every round of the search, on stderr.")
]
Open = Annotated[bool, typer.Option("--open", help="Open the images that the answer cites.")]
FLAGS = {"confirm": ("yes", Yes), "listener": ("verbose", Verbose), "opener": ("opens", Open)}
"""What is said on the command line of what a door gives to an act."""
_STOPPING = "stopping: what came is still watched; Ctrl-C again stops at once"
_AT_ONCE = "stopped at once: what was not in memory yet is a gap; run the same command to continue"


class ListingGroup(TyperGroup):
    """A group that lists by itself, and shows what its first word names, if that is no command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put ``list`` or ``show`` before what is no command."""
        shows = "show" in self.commands and bool(args) and not args[0].startswith("-")
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["show" if shows else "list", *args]
        return super().parse_args(ctx, args)


def register(app: typer.Typer, name: str) -> None:
    """Add the command of that name, or the group, which by itself does what its ``list`` does."""
    acts = {act.command: act for act in ACTS if f"{act.command} ".startswith(f"{name} ")}
    target = app
    if name not in acts:
        lists = f"{name} list" in acts
        target = typer.Typer(
            cls=ListingGroup if lists else TyperGroup,
            no_args_is_help=not lists,
            rich_markup_mode=None,
        )
        # A callback keeps a group with one command a group.
        target.callback()(lambda: None)
        app.add_typer(target, name=name, help=GUIDES[name])
    for words, act in acts.items():
        needs = any(one.default is one.empty for one in act.parameters.values())
        # Words without quotes are explained where words are asked for.
        told: dict[str, Any] = {"no_args_is_help": needs}
        if any(
            word in act.parameters and (needs or act.looks(word).argument)
            for word in ("query", "question")
        ):
            told |= {
                "cls": WordsCommand,
                "context_settings": SEVERAL_WORDS,
                "no_args_is_help": True,
            }
        target.command(words.split(" ")[-1], **told)(command_of(act))


def command_of(act: Act) -> Any:
    """Return an act as a function for Typer."""

    def command(
        profile: str | None = None,
        json: bool = False,
        yes: bool = False,
        verbose: bool = False,
        opens: bool = False,
        **given: Any,
    ) -> None:
        # What prints results knows all their classes: help needs none of them.
        from cli.render import render

        # What is not given has its default, which Typer cannot always show.
        given = {name: value for name, value in given.items() if value is not None}
        if "profile" in act.parameters and profile is not None:
            given["profile"] = profile
        # What it was done in is closed last: a result may come line by line.
        with ExitStack() as opened:
            where: Any = Home.default()
            if act.where == "store":
                from store.database import open_store

                where = opened.enter_context(open_store(where))
            elif act.where == "workspace":
                # Only what works with models imports them.
                from flows.workspace import open_workspace

                where = opened.enter_context(open_workspace(profile))
            try:
                with _of_door(act, yes=yes, verbose=verbose, opens=opens, json=json) as more:
                    result = act.call(where, given, **more)
            except KeyboardInterrupt as stop:
                if (so_far := getattr(stop, "shown", None)) is not None:
                    render(so_far, json=json)
                raise
            render(result, json=json, empty=act.empty)
        done = result if isinstance(result, list) else getattr(result, "items", None)
        rows = done if isinstance(done, list | tuple) else [result]
        # That of a list is the worst of its entries.
        if code := max((getattr(one, "exit_code", 0) for one in rows), default=0):
            raise typer.Exit(code)

    parameters = [
        one.replace(
            annotation=_for_typer(act, name, one),
            kind=one.POSITIONAL_OR_KEYWORD,
            default=one.empty if one.default is one.empty else one.default or None,
        )
        for name, one in act.parameters.items()
    ]
    shared: dict[str, Any] = {"profile": Profile} if act.where == "workspace" else {}
    shared |= dict(FLAGS[one] for one in sorted(act.from_door & FLAGS.keys()))
    shared |= {"json": Json} if act.hints["return"] not in (str, Iterator[str]) else {}
    for name, option in shared.items():
        kind, default = inspect.Parameter.KEYWORD_ONLY, None if name == "profile" else False
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=option))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    # Typer reads the types of a function from here, and its help from the docstring.
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    command.__doc__ = act.help.replace("\n\nExamples:", "\n\n\b\nExamples:")
    return command


@contextmanager
def _of_door(
    act: Act, *, yes: bool, verbose: bool, opens: bool, json: bool
) -> Iterator[dict[str, Any]]:
    """Open what this door gives to an act."""
    more: dict[str, Any] = {"confirm": agreed if yes else confirm}
    # A meter keeps back what is asked on the line that it draws.
    with ExitStack() as shown:
        if "progress" in act.from_door:
            more["progress"] = shown.enter_context(meter())
        if "stop" in act.from_door:
            more["stop"] = shown.enter_context(until_stopped())
        if "listener" in act.from_door:
            from cli.answers import open_images, progress_listener

            listener = progress_listener(silent=json, verbose=verbose)
            more["listener"] = shown.enter_context(listener)
            more["opener"] = open_images if opens else None
        yield more


@contextmanager
def until_stopped() -> Iterator[Event]:
    """Yield what SIGINT or SIGTERM sets; the second signal stops at once."""
    stop = Event()
    # Only the main thread may set what a signal does.
    if current_thread() is not main_thread():
        yield stop
        return

    def on_signal(_number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt(_AT_ONCE)
        stop.set()
        note(_STOPPING)

    before = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _for_typer(act: Act, name: str, parameter: inspect.Parameter) -> Any:
    """Return a parameter's type as Typer takes it: the act's own model checks the value."""
    hint, looks = act.hints[name], act.looks(name)
    kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    field = next((one for one in notes if isinstance(one, FieldInfo)), FieldInfo())
    kinds = (
        get_args(kind) if get_origin(kind) not in (None, list, tuple, dict, Literal) else (kind,)
    )
    first = kinds[0]
    choices = "|".join(
        map(str, get_args(first))
        if get_origin(first) is Literal
        else [one.value for one in first]
        if isinstance(first, type) and issubclass(first, Enum)
        else ()
    )
    is_needed, default = parameter.default is parameter.empty, parameter.default
    plain = (
        bool if first is bool else list[str] if get_origin(first) in (list, tuple, dict) else str
    )
    metavar = looks.metavar or choices or (None if plain is bool else name.upper())
    told: dict[str, Any] = {"metavar": metavar, "help": field.description}
    if (is_needed and not looks.flags) or looks.argument:
        shown = typer.Argument(**told, show_default=False)
    else:
        # A default is said where it is a number or one of some words.
        said = default is not False and (bool(choices) or isinstance(default, int | float))
        flags = looks.flags or (f"--{name.replace('_', '-')}",)
        shown = typer.Option(*flags, **told, show_default=bool(said and default))
    return Annotated[plain if is_needed or plain is bool else plain | None, shown]
