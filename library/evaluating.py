"""Evaluations: questions with known answers are asked, and the answers judged and measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from domain.errors import InputError
from domain.evaluation_options import AblationStage, Protocol
from domain.later import Later
from domain.words import plain_line
from evals.dataset import QuestionSet
from evals.tables import Measure, Measured, RunOutcome
from library.ingesting import STOPPED, EvalReporter
from library.params import Direct, OnCommandLine, Strategies, several, split_names
from store.progress import SILENT, Meter

if TYPE_CHECKING:
    from evals import clips, datasets, measuring, plan, running, week
    from flows import workspace as workspaces
    from strategies import registry
else:
    # These take seconds to import, which help and usage errors do without.
    clips, datasets, plan = Later("evals.clips"), Later("evals.datasets"), Later("evals.plan")
    measuring, running, week = Later("evals.measuring"), Later("evals.running"), Later("evals.week")
    workspaces = Later("flows.workspace")
    registry = Later("strategies.registry")

STAGES = {stage.name.lower(): stage for stage in AblationStage}
ALL = "all"

Folder = Annotated[
    Path,
    Field(description="Folder with the data set's files."),
    OnCommandLine(metavar="FOLDER", argument=True, only=True),
]
Out = Annotated[
    Path | None,
    Field(description="Write the answers to a JSON lines file."),
    OnCommandLine(metavar="FILE", only=True),
]


def _stages(given: Any) -> Any:
    wanted = [name.lower() for name in split_names(given)]
    if unknown := [name for name in wanted if name not in (ALL, *STAGES)]:
        raise ValueError(f"{unknown[0]!r} is none of {', '.join([*STAGES, ALL])}")
    return tuple(AblationStage) if ALL in wanted else tuple(STAGES[name] for name in wanted)


def evaluate(
    workspace: workspaces.Workspace,
    dataset: Annotated[
        str,
        Field(description="Name of a data set: see 'homer eval data'."),
        OnCommandLine(metavar="DATASET"),
    ],
    folder: Folder = Path(),
    limit: Annotated[
        int | None,
        Field(ge=1, description="Ask only the first N questions."),
        OnCommandLine(metavar="N"),
    ] = None,
    ablate: Annotated[
        tuple[AblationStage, ...],
        BeforeValidator(_stages),
        Field(description="Ask also with less memory: entity, events, edges, or all. Repeatable."),
        OnCommandLine(metavar="STAGE"),
    ] = (),
    strategy: Strategies = (),
    protocol: Annotated[
        Protocol | None,
        Field(description="How to learn skills. Default: split; with --ablate or --strategy none."),
    ] = None,
    baseline: Annotated[
        bool, Field(description="Answer multiple choice also by the closest line alone.")
    ] = False,
    concurrency: Annotated[
        int | None,
        Field(ge=1, le=64, description="Number of concurrent questions."),
        OnCommandLine(metavar="N"),
    ] = None,
    max_cost: Annotated[
        float | None,
        Field(ge=0, description="Start nothing new beyond this cost."),
        OnCommandLine(metavar="USD"),
    ] = None,
    name: Annotated[
        str | None,
        Field(description="Name of the run. Default: by its settings."),
        OnCommandLine(metavar="RUN"),
    ] = None,
    direct: Direct = False,
    progress: Meter = SILENT,
) -> RunOutcome:
    """Ask the questions of a data set, judge the answers, and learn from them.

    Videos that are not in memory are watched first. After an interruption, the same command
    resumes the run, and asks no question twice.

    With --strategy NAME,auto it learns on one half of the videos which strategy suits which
    question, and compares that with the best single strategy on the other half.

    Examples:
      homer eval run own my-questions
      homer eval run video-mme-long ~/vm --limit 50
      homer eval run lvbench ~/lvbench --protocol none --ablate all --max-cost 5
      homer eval run egoschema ~/egoschema --strategy NAME
      homer eval run egoschema ~/egoschema --strategy NAME,auto

    Raises:
        NotFound: there is no such data set or strategy.
        InputError: the data set cannot be read, or the run was started with other settings.
    """
    planned = plan.plan(
        datasets.read(dataset, folder),
        workspace.profile,
        protocol,
        ablate,
        limit,
        baseline=baseline,
        strategies=strategy,
    )
    settings, called = planned.settings, plan.checked_name(name or plan.run_name(planned))
    progress.say(f"run {called}: {settings.questions} questions, protocol {settings.protocol}")
    if opened := sum(not asked.question.options for asked in planned.questions):
        judge = settings.judge or "nobody: they stay unjudged"
        progress.say(f"{opened} open questions, judged by {plain_line(judge)}")
    if planned.absent:
        progress.say(f"absent, not asked about: {plain_line(', '.join(planned.absent))}")
    try:
        return running.run(
            workspace,
            planned,
            EvalReporter(progress),
            name=called,
            direct=direct,
            workers=concurrency,
            max_cost=max_cost,
        )
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(STOPPED) from stop


def evaluate_clips(
    workspace: workspaces.Workspace,
    questions: Annotated[
        Path,
        Field(description="File of questions, beside the clips."),
        OnCommandLine(metavar="QUESTIONS", only=True),
    ],
    out: Out = None,
    progress: Meter = SILENT,
) -> Measured:
    """Measure answers to questions about clips: cited moments and chosen options.

    Clips that are not in memory are watched first, and absent files are left out. The exit code is
    1 if a bar is missed.

    Examples:
      homer eval local media/questions.json --out answers.jsonl

    Raises:
        InputError: the file cannot be read, or none of the clips is there.
    """
    return clips.measure_clips(workspace, questions, EvalReporter(progress), out)


def evaluate_week(
    workspace: workspaces.Workspace,
    folder: Annotated[
        Path,
        Field(description="Folder with captions.jsonl.gz and questions.json."),
        OnCommandLine(metavar="FOLDER", only=True),
    ],
    strategy: Strategies = (),
    ablate: Annotated[
        bool, Field(description="Ask these strategies also without each of their parts, and all.")
    ] = False,
    limit: Annotated[
        int | None,
        Field(ge=1, description="Ask only N questions, spaced evenly over the file."),
        OnCommandLine(metavar="N"),
    ] = None,
    out: Out = None,
    progress: Meter = SILENT,
) -> Measured:
    """Measure answers on EgoLife, a week of captions, beside baselines.

    Each question is asked as of its time. Captions that are not in memory are imported first. The
    exit code is 1 if a bar is missed.

    Examples:
      homer eval egolife data/egolife --out answers.jsonl
      homer eval egolife data/egolife --strategy NAME --ablate --limit 50

    Raises:
        NotFound: there is no such strategy.
        InputError: a file is missing or malformed.
    """
    others = [registry.find_strategy(name) for name in strategy]
    return week.measure_week(
        workspace,
        folder,
        EvalReporter(progress),
        out,
        strategies=others,
        ablate=ablate,
        limit=limit,
    )


def evaluate_first(
    workspace: workspaces.Workspace,
    folder: Annotated[
        Path,
        Field(description="Folder with the clips."),
        OnCommandLine(metavar="FOLDER", only=True),
    ],
    sets: Annotated[
        tuple[QuestionSet, ...],
        BeforeValidator(several),
        Field(
            description="A set of questions: first, seen, everyday_work or everyday_held. "
            "Repeatable; all by default."
        ),
        OnCommandLine("--set", metavar="SET"),
    ] = (),
    questions: Annotated[
        Path | None,
        Field(description="Questions of your own, in the form of Homer's."),
        OnCommandLine(metavar="FILE", only=True),
    ] = None,
    out: Annotated[
        Path | None,
        Field(description="Write the answers to JSON lines, a file a set."),
        OnCommandLine(metavar="FILE", only=True),
    ] = None,
    progress: Meter = SILENT,
) -> list[Measured]:
    """Measure answers to everyday questions: right, rightly declined, or wrong.

    Beside what people ask first and what is seen, there are everyday questions in two halves: one
    to work on, and one to look at once, when a change is done. Some cannot be answered, and must be
    declined. Clips that are not in memory are watched first, and absent files are left out. The
    exit code is 1 if a bar is missed.

    Examples:
      homer eval first media --set everyday_work --out answers.jsonl
      homer eval first media

    Raises:
        InputError: a file cannot be read, or none of the clips is there.
    """
    reporter = EvalReporter(progress)
    return clips.measure_sets(workspace, folder, sets, reporter, out, questions)


def evaluate_all(
    workspace: workspaces.Workspace,
    sets: Annotated[
        tuple[str, ...],
        Field(
            description="A data set and its folder: local, first, egolife, or one of "
            "'homer eval data'."
        ),
        OnCommandLine(metavar="SET=FOLDER..."),
    ],
    progress: Meter = SILENT,
) -> list[Measure]:
    """Measure several data sets without learning, and print one table beside baselines.

    Videos that are not in memory are watched or imported first. "local", "first" and "egolife" are
    measured as by the commands of these names; any other data set is asked in a new run, and its
    multiple choice also answered by the baseline. The exit code is 4 if videos are left out.

    Examples:
      homer eval all local=media egolife=data/egolife nextqa=data/nextqa

    Raises:
        NotFound: there is no such data set.
        InputError: a data set is not given as SET=FOLDER, or cannot be read.
    """
    wanted, reporter = [], EvalReporter(progress)
    for given in sets:
        name, _, folder = given.partition("=")
        if not name or not folder:
            raise InputError(f"{given!r} is not SET=FOLDER, as in nextqa=data/nextqa")
        # All names are checked before the first set is asked, which may take hours.
        if name not in (clips.CLIPS, QuestionSet.FIRST, week.WEEK):
            datasets.source(name)
        wanted.append((name, Path(folder)))
    measured = list[Measured]()
    for name, path in wanted:
        if name == clips.CLIPS:
            file = path / "questions.json"
            measured.append(clips.measure_clips(workspace, file, reporter, baseline=True))
        elif name == QuestionSet.FIRST:
            both = (QuestionSet.FIRST, QuestionSet.WORK)
            measured += clips.measure_sets(workspace, path, both, reporter)
        elif name == week.WEEK:
            measured.append(week.measure_week(workspace, path, reporter))
        else:
            given_set = datasets.read(name, path)
            find = measuring.by_type
            measured.append(measuring.measure(workspace, given_set, reporter, find, baseline=True))
    return [
        replace(line, exit_code=4 if one.left_out else 0)
        for one in measured
        for line in one.measures
    ]
