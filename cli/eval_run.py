"""``homer eval run``: ask the questions of a data set, judge the answers, learn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import note, say_json
from cli.options import Json, MoreStrategies, Profile
from cli.progress import meter
from domain.evaluation_options import AblationStage, Protocol
from domain.words import plain_line
from library.params import split_names
from library.progress import STOPPED, Reporter
from store.progress import Meter, import_progress

if TYPE_CHECKING:
    from domain.evaluation import Verdict
    from evals.plan import Plan
    from store.queries.evaluations import Slot

BY_NAME = {stage.name.lower(): stage for stage in AblationStage}
ALL = "all"

DatasetName = Annotated[
    str, typer.Argument(metavar="DATASET", help="Name of a data set: see 'homer eval data'.")
]
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with the data set's files.")]


def run(
    dataset: DatasetName,
    folder: Folder = Path(),
    profile: Profile = None,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Ask only the first N questions.")
    ] = None,
    ablate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STAGE",
            help="Ask also with less memory: entity, events, edges, or all. Repeatable.",
        ),
    ] = None,
    strategy: MoreStrategies = None,
    protocol: Annotated[
        Protocol | None,
        typer.Option(help="How to learn skills. Default: split; with --ablate or --strategy none."),
    ] = None,
    baseline: Annotated[
        bool,
        typer.Option("--baseline", help="Answer multiple choice also by the closest line alone."),
    ] = False,
    concurrency: Annotated[
        int | None, typer.Option(min=1, max=64, metavar="N", help="Number of concurrent questions.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0, metavar="USD", help="Start nothing new beyond this cost.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="RUN", help="Name of the run. Default: by its settings.")
    ] = None,
    direct: Annotated[
        bool, typer.Option("--direct", help="Run in this process, without Prefect's server.")
    ] = False,
    json: Json = False,
) -> None:
    """Ask the questions of a data set, judge the answers, and learn from them.

    Videos that are not in memory are watched first. After an interruption, the same command
    resumes the run, and asks no question twice.

    With --strategy NAME,auto it learns on one half of the videos which strategy suits which
    question, and compares that with the best single strategy on the other half.

    \b
    Examples:
      homer eval run own my-questions
      homer eval run video-mme-long ~/vm --limit 50
      homer eval run lvbench ~/lvbench --protocol none --ablate all --max-cost 5
      homer eval run egoschema ~/egoschema --strategy NAME
      homer eval run egoschema ~/egoschema --strategy NAME,auto
    """
    stages = _parse_stages(ablate or [])
    # These take seconds to import, which help and usage errors do without.
    from cli.render import render
    from evals.datasets import read
    from evals.plan import checked_name, plan, run_name
    from evals.records import run_report
    from evals.run import run as run_evaluation
    from flows.workspace import open_workspace

    questions = read(dataset, folder)
    try:
        with open_workspace(profile) as workspace:
            planned = plan(
                questions,
                workspace.profile,
                protocol,
                stages,
                limit,
                baseline=baseline,
                strategies=split_names(strategy),
            )
            called = checked_name(name) if name else run_name(planned)
            _announce(planned, called)
            with meter() as bar:
                outcome = run_evaluation(
                    workspace,
                    called,
                    planned,
                    EvalReporter(bar),
                    direct=direct,
                    workers=concurrency,
                    max_cost=max_cost,
                )
            found = run_report(workspace.store, outcome.name)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(STOPPED) from stop
    if json:
        unfinished = {"left_out": outcome.left_out, "over": outcome.over}
        say_json(found.model_dump(mode="json") | unfinished)
    else:
        render(found, json=False)
        note(f"'homer eval report {outcome.name}' shows it again, and writes CSV and HTML")
    raise typer.Exit(5 if outcome.over else 4 if outcome.left_out else 0)


def _parse_stages(names: list[str]) -> list[AblationStage]:
    """Parse stages given by their short names.

    Raises:
        BadParameter: there is no such stage.
    """
    wanted = [name.lower() for name in split_names(names)]
    if unknown := [name for name in wanted if name not in (ALL, *BY_NAME)]:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join([*BY_NAME, ALL])}")
    return list(AblationStage) if ALL in wanted else [BY_NAME[name] for name in wanted]


def _announce(planned: Plan, name: str) -> None:
    settings = planned.settings
    judge = settings.judge or "nobody: they stay unjudged"
    open_questions = sum(not asked.question.options for asked in planned.questions)
    note(f"run {name}: {settings.questions} questions, protocol {settings.protocol}")
    if open_questions:
        note(f"{open_questions} open questions, judged by {plain_line(judge)}")
    if planned.absent:
        note(f"absent, not asked about: {plain_line(', '.join(planned.absent))}")


class EvalReporter(Reporter):
    """Shows the progress of an evaluation on a meter."""

    def __init__(self, bar: Meter) -> None:
        super().__init__(bar)
        self._imports: dict[str, Callable[[int, int], None]] = {}

    def importing(self, video: str, done: int, total: int) -> None:
        """Show how many clips of captions are in memory."""
        self._imports.setdefault(video, import_progress(self._bar, video))(done, total)

    def asking(self, total: int, done: int) -> None:
        """Start on questions."""
        self._bar.start("answers", total, done)

    def judged(self, slot: Slot, verdict: Verdict, cost_usd: float) -> None:
        """Count a judged question."""
        if verdict.failed:
            self._bar.say(f"homer: question {plain_line(slot.question)}: {plain_line(verdict.why)}")
        if cost_usd:
            self._bar.aside(f"{cost_usd:.2f} dollars so far")
        self._bar.step()


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(no_args_is_help=True)(run)
