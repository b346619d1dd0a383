"""What is made of videos that were watched: memories of strategies, vectors, training data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from domain.calls import CallTotals
from domain.words import format_time
from evals.training import export as training
from evals.training.export import TrainingManifest
from flows.build import Built, OnUse
from flows.build import build as build_memory
from flows.reembed import ReembedPlan, fitting_thresholds, plan_reembedding
from flows.reembed import reembed as run_reembedding
from flows.reporting import connect_to_prefect
from flows.workspace import Workspace
from library.params import Direct, OnCommandLine, VideoName, split_names
from store.progress import SILENT, Meter, import_progress
from store.vector_index import build_index
from strategies.registry import all_strategies, find_strategy


def build(
    workspace: Workspace,
    video: VideoName,
    memory: Annotated[
        tuple[str, ...],
        BeforeValidator(split_names),
        Field(
            description="Of these strategies, see 'homer strategies'. Repeatable. Default: all "
            "that build one."
        ),
        OnCommandLine("--memory", "-m", metavar="NAME,..."),
    ] = (),
    again: Annotated[
        bool,
        Field(
            description="Rebuild it: what was built before is deleted, except frames, and a "
            "language model is asked again."
        ),
    ] = False,
    direct: Direct = False,
    progress: Meter = SILENT,
) -> list[Built]:
    """Build the memory of a strategy from what was watched of a video.

    Videos need not be watched again. After an interruption the same command resumes, and on a video
    that was watched further it builds what is missing. Where a language model writes it, what it
    will take is said as far as it is known, and what it took.

    Examples:
      homer build talk
      homer build talk --memory NAME
      homer build talk --memory NAME --again

    Raises:
        NotFound: there is no such video or strategy.
        InputError: the strategy builds no memory.
        Busy: another process builds the same.
    """
    wanted = [find_strategy(name) for name in memory]
    chosen = wanted or [strategy for strategy in all_strategies() if strategy.builds_memory]
    api = None if direct else connect_to_prefect(workspace.home, progress.say)
    try:
        return [
            build_memory(
                workspace,
                video,
                strategy,
                import_progress(progress, strategy.name),
                again=again,
                on_use=show_use(progress, strategy.name),
                api=api,
            )
            for strategy in chosen
        ]
    except KeyboardInterrupt as stop:
        rest = "without --again the same command" if again else "the same command"
        raise KeyboardInterrupt(f"stopped; {rest} builds the rest") from stop


def show_use(progress: Meter, name: str) -> OnUse:
    """Return a callback that says what a build will take, then beside the bar what it took."""

    def show(so_far: CallTotals, whole: CallTotals | None) -> None:
        if whole and not whole.calls:
            return  # Nothing that was seen so far gave the model anything to write.
        if so_far.calls and whole:
            progress.aside(f"{so_far} of about {whole}")
        elif whole:
            took = format_time(whole.ms)
            progress.say(f"{name}: about {whole}, {took} of replies, as builds on record took")
        elif not so_far.calls:
            progress.say(f"{name}: no build by this model is on record; see its cost after a step")

    return show


def reembed(
    workspace: Workspace,
    dry_run: Annotated[
        bool, Field(description="Only print what it would take: rows, pictures, cost.")
    ] = False,
    direct: Direct = False,
    progress: Meter = SILENT,
) -> ReembedPlan:
    """Change a library to the text encoder and the image-text model of a profile.

    Every stored text gets a new vector: lines of memory, descriptions of images and segments. If
    the profile has an image-text model, so does every keyframe and kept frame. Nothing is watched
    again. Videos can be watched and questions asked meanwhile, with the vectors that they had until
    all new ones are there. An interrupted run continues where it stopped.

    It ends with the thresholds of cosines that fit the encoder, measured on lines in memory, as
    lines for the profile.

    Examples:
      homer reembed --profile multilingual --dry-run
      homer reembed --profile multilingual

    Raises:
        Busy: another process changes the encoders of this library.
        ModelError: an encoder failed; what has new vectors keeps them.
    """
    plan = plan_reembedding(workspace, timed=dry_run)
    if dry_run or not plan.videos:
        return plan
    try:
        run_reembedding(workspace, plan, progress, progress.say, direct=direct)
        build_index(workspace.store, progress)
        if fitting := fitting_thresholds(workspace):
            where = f"[profiles.{workspace.profile.name}] of {workspace.home.config}"
            progress.say(
                f"these thresholds fit {plan.encoder}; put them below {where}, or at the top of "
                "the profile's own file:"
            )
            for line in fitting.splitlines():
                progress.say(line)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt("stopped; the next 'homer reembed' goes on from here") from stop
    return plan.model_copy(update={"done": True})


def export_training(
    workspace: Workspace,
    folder: Annotated[
        Path,
        Field(description="New folder; an earlier export is replaced."),
        OnCommandLine(metavar="FOLDER", only=True),
    ],
    strategy: Annotated[
        str,
        Field(description="Whose answers, and whose tools are trained: see 'homer strategies'."),
        OnCommandLine("--strategy", "-s", metavar="NAME"),
    ],
    limit: Annotated[
        int | None,
        Field(ge=1, description="Only the N oldest judged answers."),
        OnCommandLine(metavar="N"),
    ] = None,
) -> TrainingManifest:
    """Export the judged answers of a strategy as training data for TRL's GRPO.

    Only answers that an evaluation or 'homer skills judge' judged are exported, without forks. A
    question becomes a prompt if its right option is known. The files are readable by you only, and
    hold what answers quote of your videos: later deletions do not reach them.

    Examples:
      homer train export runs --strategy NAME
      homer train export runs --strategy NAME --limit 500 --json

    Raises:
        NotFound: there is no such strategy.
        InputError: nothing is judged, or the folder is something else or cannot be written.
    """
    chosen, models = find_strategy(strategy), workspace.profile.name
    return training.export_training(workspace.store, chosen, models, folder, limit)
