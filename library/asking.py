"""Asking questions: one, going on with it, another way from one of its rounds, several ways."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationError

from domain.asking import Question, check_options
from domain.base import first_problem
from domain.errors import HomerError, InputError, NotFound
from domain.moments import Answered
from domain.trajectory import ForkEdit, PartialReply, RunEvent, RunListener
from flows.workspace import Workspace, open_trajectory_workspace
from graphs.ask_result import AskResult, StoppedEarly
from graphs.runner import Runner
from graphs.stream import iterate, stream
from library.moments import cited_images
from library.params import AsOf, OnCommandLine, ProfileName, Videos, several, split_names
from library.rounds import SideBySide, load_history, side_by_side
from library.trajectories import Id, answered
from models.preload import Name, preloading
from models.toolbox import Toolbox
from store.database import Store
from store.home import Home
from store.queries.trajectories import find_trajectory
from store.queries.videos import named_or_all, video_titles
from strategies.registry import check_strategy, strategy_names

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


def make_question(
    store: Store,
    text: str,
    videos: Sequence[str] = (),
    options: Sequence[str] = (),
    as_of_ms: int | None = None,
) -> Question:
    """Return a question about these videos, or about all.

    Args:
        store: has the videos.
        text: the question.
        videos: ids, unambiguous beginnings, or titles.
        options: answers to choose from.
        as_of_ms: what was known by then; None: at the end.

    Raises:
        InputError: the question is empty, options cannot be told apart, or nothing was watched.
        NotFound: there is no such video.
    """
    if not text.strip():
        raise InputError("the question is empty")
    choices = check_options(options)
    with store.begin() as session:
        ids = named_or_all(session, videos)
    if not ids:
        raise InputError("nothing has been watched yet: homer ingest FILE")
    return Question(text=text.strip(), videos=ids, options=choices, as_of_ms=as_of_ms)


def ask(
    workspace: Workspace,
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
    asked = make_question(workspace.store, question, video, options, as_of)
    with answering(workspace) as runner:
        return shown(
            workspace.store, lambda: runner.ask(asked, listener, strategy=strategy), opener
        )


def ask_stream(
    workspace: Workspace,
    question: Words,
    video: Videos = (),
    options: Options = (),
    as_of: AsOf = None,
    strategy: StrategyName = None,
) -> Iterator[RunEvent | Answered]:
    """Answer a question as ``ask`` does: yield each step, and the answer last.

    Ending the iteration early ends the search; the best answer so far is stored.
    """
    asked = make_question(workspace.store, question, video, options, as_of)
    with answering(workspace) as runner:
        for event in iterate(runner, asked, strategy):
            yield answer_of(workspace.store, event) if isinstance(event, AskResult) else event


async def aask_stream(
    workspace: Workspace,
    question: Words,
    video: Videos = (),
    options: Options = (),
    as_of: AsOf = None,
    strategy: StrategyName = None,
) -> AsyncIterator[RunEvent | Answered]:
    """Answer a question as ``ask_stream`` does, for asynchronous programs."""
    asked = make_question(workspace.store, question, video, options, as_of)
    with answering(workspace) as runner:
        async for event in stream(runner, asked, strategy=strategy):
            yield answer_of(workspace.store, event) if isinstance(event, AskResult) else event


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
        open_trajectory_workspace(home, id, profile) as (workspace, row),
        answering(workspace) as runner,
    ):
        found = shown(workspace.store, lambda: runner.resume(row.id, listener), opener)
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
        open_trajectory_workspace(home, id, change.profile) as (workspace, row),
        answering(workspace) as runner,
    ):
        return shown(workspace.store, lambda: runner.fork(row.id, number, change, listener))


def compare(
    workspace: Workspace,
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
) -> SideBySide:
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
    names = tuple(dict.fromkeys(map(check_strategy, strategy or strategy_names())))
    store = workspace.store
    asked = make_question(store, question, video, options, as_of)
    histories, failures = [], dict[str, HomerError]()
    with answering(workspace) as runner:
        for place, name in enumerate(names, start=1):
            if listener is not None:
                purpose = f"{name} ({place} of {len(names)})"
                listener(PartialReply(round=0, purpose=purpose, text=""))
            try:
                result = runner.ask(asked, listener, strategy=name)
            except HomerError as error:
                failures[name] = error
                continue
            histories.append(load_history(store, result.trajectory_id))
    if not histories:
        raise next(iter(failures.values()))
    with store.begin() as session:
        titles = video_titles(session)
    return side_by_side(histories).model_copy(
        update={
            "titles": {one: titles.get(one, one) for one in asked.videos},
            "failed": {name: str(error) for name, error in failures.items()},
        }
    )


@contextmanager
def answering(workspace: Workspace) -> Iterator[Runner]:
    """Open what answers, and load the models that it needs in the background meanwhile."""
    toolbox: Toolbox = workspace.toolbox
    # Without a language model, evidence is ranked again.
    needed: tuple[Name, ...] = ("text", "reranker")
    needed = needed if toolbox.profile.reasoner == "local" else needed[:1]
    with preloading(toolbox, needed), Runner(workspace.store, toolbox) as runner:
        yield runner


def shown(store: Store, run: Callable[[], AskResult], opener: Opener | None = None) -> Answered:
    """Return the answer that a run ends with, as doors show it.

    Raises:
        StoppedEarly: Ctrl-C was pressed; it has the best answer so far.
    """
    try:
        found = answer_of(store, run())
    except StoppedEarly as stopped:
        stopped.shown = answer_of(store, stopped.asked)
        raise
    if opener is not None:
        opener(cited_images(store, found.citations))
    return found


def answer_of(store: Store, result: AskResult) -> Answered:
    """Return the recorded answer of a run.

    Raises:
        NotFound: its question was deleted meanwhile.
    """
    with store.begin() as session:
        row = find_trajectory(session, result.trajectory_id)
    found = answered(store, row, result.rounds, result.choice)
    if found is None:
        raise NotFound(f"question {row.id} has no answer any more")
    return found
