"""Asking questions: one, going on with it, another way from one of its rounds, several ways."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, ValidationError

from domain.base import first_problem
from domain.errors import HomerError, InputError
from domain.later import Later
from domain.moments import Answered
from domain.trajectory import ForkEdit, PartialReply, RunEvent, RunListener
from library.params import AsOf, Id, OnCommandLine, ProfileName, Videos, several, split_names
from store.home import Home

if TYPE_CHECKING:
    from flows import workspace as workspaces
    from graphs import concurrent as streams
    from library import answering, rounds
    from store.queries import videos
    from strategies import registry
else:
    # The help of these commands is asked for most, and must not wait for what answers.
    workspaces, streams = Later("flows.workspace"), Later("graphs.concurrent")
    answering, rounds = Later("library.answering"), Later("library.rounds")
    videos, registry = Later("store.queries.videos"), Later("strategies.registry")

Opener = Callable[[Sequence[Path]], None]
"""Shows the images in these files."""
Words = Annotated[
    str,
    Field(max_length=4000, description="What you want to know, in quotes."),
    OnCommandLine(metavar="QUESTION"),
]
Options = Annotated[
    tuple[Annotated[str, Field(max_length=1000)], ...],
    BeforeValidator(several),
    Field(max_length=26, description="An option to choose from. Repeatable."),
    OnCommandLine("--option", "-o", metavar="TEXT"),
]
StrategyName = Annotated[
    str | None,
    Field(
        max_length=80,
        description="How memory is searched: see 'homer strategies'. auto: as was learned for such "
        "questions. Default: by the settings, homer.",
    ),
    OnCommandLine("--strategy", "-s", metavar="NAME"),
]


def ask(
    workspace: workspaces.Workspace,
    question: Words,
    video: Videos = (),
    options: Options = (),
    as_of: AsOf = None,
    strategy: StrategyName = None,
    listener: RunListener | None = None,
    opener: Opener | None = None,
) -> Answered:
    """Answer a question, with the times in the video that support the answer.

    Without a video the question is about all videos of the library. What is not in memory is an
    answer too, with what was searched.

    Examples:
      homer ask "Who opens the talk?" --video talk
      homer ask "Who mentions the budget?"
      homer ask "Where was it?" -v talk -o Paris -o Berlin --as-of 12:30
      homer ask "Who opens the talk?" -v talk --strategy auto

    Raises:
        InputError: the question is empty, or nothing was watched.
        NotFound: there is no such video or strategy.
        ModelError: the language model cannot be reached.
    """
    asked = answering.make_question(workspace.store, question, video, options, as_of)
    with answering.open_runner(workspace) as runner:
        return answering.shown(
            workspace.store, lambda: runner.ask(asked, listener, strategy=strategy), opener
        )


def ask_stream(
    workspace: workspaces.Workspace,
    question: Words,
    video: Videos = (),
    options: Options = (),
    as_of: AsOf = None,
    strategy: StrategyName = None,
) -> Iterator[RunEvent | Answered]:
    """Answer a question as ``ask`` does: yield each step, and the answer last.

    Ending the iteration early ends the search; the best answer so far is stored.
    """
    asked = answering.make_question(workspace.store, question, video, options, as_of)
    with answering.open_runner(workspace) as runner:
        for event in streams.iterate(runner, asked, strategy):
            yield answering.told(workspace.store, event)


async def aask_stream(
    workspace: workspaces.Workspace,
    question: Words,
    video: Videos = (),
    options: Options = (),
    as_of: AsOf = None,
    strategy: StrategyName = None,
) -> AsyncIterator[RunEvent | Answered]:
    """Answer a question as ``ask_stream`` does, for asynchronous programs."""
    asked = answering.make_question(workspace.store, question, video, options, as_of)
    with answering.open_runner(workspace) as runner:
        async for event in streams.stream(runner, asked, strategy=strategy):
            yield answering.told(workspace.store, event)


def resume(
    home: Home,
    id: Id,  # noqa: A002 - what users type
    profile: ProfileName = None,
    listener: RunListener | None = None,
    opener: Opener | None = None,
) -> Answered:
    """Continue an interrupted question after its last finished step.

    No recorded model call is repeated. 'homer trajectory' lists the ids. An answered question has
    its answer again.

    Examples:
      homer resume 3f2a

    Raises:
        NotFound: there is no such trajectory.
    """
    with (
        # With the models that it was asked with, unless others are named.
        workspaces.open_trajectory_workspace(home, id, profile) as (workspace, row),
        answering.open_runner(workspace) as runner,
    ):
        found = answering.shown(workspace.store, lambda: runner.resume(row.id, listener), opener)
    known = row.answer is not None and row.state == "done"
    note = f"this question is answered already; {found.note}".rstrip("; ")
    return found.model_copy(update={"note": note}) if known else found


def fork(
    home: Home,
    id: Id,  # noqa: A002 - what users type
    number: Annotated[
        int,
        Field(ge=1, description="The round to continue from."),
        OnCommandLine("--round", "-r", metavar="K"),
    ],
    edit: Annotated[
        Path | None,
        Field(description="JSON file with the changed plan, action, evidence or profile."),
        OnCommandLine(metavar="FILE", only=True),
    ] = None,
    profile: ProfileName = None,
    listener: RunListener | None = None,
) -> Answered:
    """Continue an answer from one of its rounds, with something changed.

    The new trajectory copies the rounds before K, and calls models from round K on. To change the
    plan, the action or the evidence, edit what 'homer trajectory round ID K --json' prints.
    Without --edit and --profile, round K is decided again.

    Examples:
      homer fork 3f2a --round 2
      homer fork 3f2a --round 2 --profile gemini
      homer trajectory round 3f2a 2 --json > round.json
      homer fork 3f2a --round 2 --edit round.json

    Raises:
        NotFound: there is no such trajectory or round.
        InputError: the file cannot be read, or is no edit; the message says where it is wrong.
    """
    try:
        change = ForkEdit.model_validate_json(edit.read_text("utf-8") if edit else "{}")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{edit} cannot be read: {error}") from error
    except ValidationError as error:
        raise InputError(f"{edit} is no edit: {first_problem(error, 'the file')}") from error
    if profile:
        change = change.model_copy(update={"profile": profile})
    with (
        # The models are a part of what a fork may change.
        workspaces.open_trajectory_workspace(home, id, change.profile) as (workspace, row),
        answering.open_runner(workspace) as runner,
    ):
        return answering.shown(
            workspace.store, lambda: runner.fork(row.id, number, change, listener)
        )


def compare(
    workspace: workspaces.Workspace,
    question: Words,
    video: Videos = (),
    options: Options = (),
    as_of: AsOf = None,
    strategy: Annotated[
        tuple[str, ...],
        BeforeValidator(split_names),
        Field(description="Only these, see 'homer strategies'. Repeatable. Default: all."),
        OnCommandLine("--strategy", "-s", metavar="NAME,..."),
    ] = (),
    listener: RunListener | None = None,
) -> rounds.SideBySide:
    """Answer a question by several strategies, and compare them.

    A row for each strategy: its answer, confidence, number of
    citations, rounds, model calls, tokens and seconds; then what only one of them found. Each
    answer is a trajectory of its own. A strategy that fails does not stop the others.

    Examples:
      homer compare "Who opens the talk?" --video talk
      homer compare "Where was it?" -v talk -o Paris -o Berlin --strategy homer,NAME

    Raises:
        InputError: the question is empty, or nothing was watched.
        NotFound: there is no such video or strategy.
        HomerError: all of them failed; the first error.
    """
    names = tuple(
        dict.fromkeys(map(registry.check_strategy, strategy or registry.strategy_names()))
    )
    store = workspace.store
    asked = answering.make_question(store, question, video, options, as_of)
    histories, failures = [], dict[str, HomerError]()
    with answering.open_runner(workspace) as runner:
        for place, name in enumerate(names, start=1):
            if listener is not None:
                purpose = f"{name} ({place} of {len(names)})"
                listener(PartialReply(round=0, purpose=purpose, text=""))
            try:
                result = runner.ask(asked, listener, strategy=name)
            except HomerError as error:
                # One that fails does not keep the others from being asked.
                failures[name] = error
                continue
            histories.append(rounds.load_history(store, result.trajectory_id))
    if not histories:
        # Without any answer there is nothing to compare: why the first failed is told.
        raise next(iter(failures.values()))
    with store.begin() as session:
        titles = videos.video_titles(session)
    return rounds.side_by_side(histories).model_copy(
        update={
            "titles": {one: titles.get(one, one) for one in asked.videos},
            "failed": {name: str(error) for name, error in failures.items()},
        }
    )
