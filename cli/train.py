"""``homer train``: what a language model is trained on with the answers that were judged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.console import note, say, say_json
from cli.options import Json, Profile
from evals.training.export import export_training
from flows.workspace import open_workspace
from strategies.registry import find_strategy

GUIDE = """Export judged answers as training data for a language model.

The export has the recorded runs of a strategy with their rewards, and the prompts, rewards and
settings for TRL's GRPO. The training itself is started from Python: docs/training.md.

\b
Examples:
  homer train export runs --strategy NAME
"""


def export(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="New folder; an earlier export is replaced.")
    ],
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            "-s",
            metavar="NAME",
            help="Whose answers, and whose tools are trained: see 'homer strategies'.",
        ),
    ],
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only the N oldest judged answers.")
    ] = None,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Export the judged answers of a strategy as training data for TRL's GRPO.

    Only answers that an evaluation or 'homer skills judge' judged are exported, without forks. A
    question becomes a prompt if its right option is known. The files are readable by you only, and
    hold what answers quote of your videos: later deletions do not reach them.

    \b
    Examples:
      homer train export runs --strategy NAME
      homer train export runs --strategy NAME --limit 500 --json
    """
    chosen = find_strategy(strategy)
    with open_workspace(profile) as workspace:
        made = export_training(workspace.store, chosen, workspace.profile.name, folder, limit)
    if json:
        return say_json(made.model_dump(mode="json"))
    say(f"{made.trajectories} trajectories, {made.right} of them right; {made.prompts} prompts")
    if made.open_questions:
        note(f"{made.open_questions} are open questions, which code cannot judge: no prompts")
    return note(f"{folder} is complete; docs/training.md says how to train with it")


def register(app: typer.Typer) -> None:
    """Add the command."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    # A callback keeps the only command a command of its own.
    group.callback()(lambda: None)
    group.command(no_args_is_help=True)(export)
    app.add_typer(group, name="train", help=GUIDE)
