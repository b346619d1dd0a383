"""``homer fork``: run a trajectory again, changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from cli.answers import run_and_show
from cli.console import note
from cli.options import Json, Profile, Verbose
from domain.base import first_problem
from domain.errors import InputError
from domain.trajectory import ForkEdit
from flows.workspace import open_trajectory_workspace
from graphs.ask import fork as run_fork


def fork(
    name: Annotated[
        str, typer.Argument(metavar="ID", help="Id of a trajectory, or the beginning of it.")
    ],
    at: Annotated[
        int, typer.Option("--round", "-r", min=1, metavar="K", help="The round to continue from.")
    ],
    edit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="JSON file with the changed plan, action, evidence or profile."
        ),
    ] = None,
    profile: Profile = None,
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Continue an answer from one of its rounds, with something changed.

    The new trajectory copies the rounds before K, and calls models from round K on. To change the
    plan, the action or the evidence, edit what 'homer trajectory round ID K --json' prints.
    Without --edit and --profile, round K is decided again.

    \b
    Examples:
      homer fork 3f2a --round 2
      homer fork 3f2a --round 2 --profile gemini
      homer trajectory round 3f2a 2 --json > round.json
      homer fork 3f2a --round 2 --edit round.json
    """
    change = read_edit(edit, profile)
    with open_trajectory_workspace(name, change.profile) as (workspace, row):
        if not json:
            note(f"a fork of {row.id} at round {at}")
        store, toolbox = workspace.store, workspace.toolbox
        run_and_show(
            workspace,
            row.question,
            lambda listener: run_fork(store, toolbox, row.id, at, change, listener),
            as_json=json,
            verbose=verbose,
        )


def read_edit(path: Path | None, profile: str | None) -> ForkEdit:
    """Read the edit in a file; ``profile``, where it is given, replaces that of the file.

    Raises:
        InputError: the file cannot be read, or is no edit; the message says where it is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8") if path else "{}"
        made = ForkEdit.model_validate_json(text)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    except ValidationError as error:
        raise InputError(f"{path} is no edit: {first_problem(error, 'the file')}") from error
    return made.model_copy(update={"profile": profile}) if profile else made


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(no_args_is_help=True)(fork)
