"""What asking works with: the question, what runs it, the answer as doors show it; replays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from domain.asking import Question, check_options
from domain.errors import InputError, NotFound
from domain.moments import Answered
from domain.trajectory import RunEvent
from flows.workspace import Workspace
from graphs.ask_result import AskResult, StoppedEarly
from graphs.replay import Replayed
from graphs.replay import replay as run_replay
from graphs.runner import Runner
from library.asking import Opener
from library.moments import cited_images
from library.params import Id
from library.trajectories import answered
from models.toolbox import Ahead, Toolbox, preloading
from store.database import Store
from store.queries.trajectories import find_trajectory
from store.queries.videos import named_or_all


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


@contextmanager
def open_runner(workspace: Workspace) -> Iterator[Runner]:
    """Open what answers, and load the models that it needs in the background meanwhile."""
    toolbox: Toolbox = workspace.searching
    # Without a language model, evidence is ranked again.
    needed: tuple[Ahead, ...] = ("text", "reranker")
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
        # After Ctrl-C doors show the best answer so far.
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


def told(store: Store, event: RunEvent | AskResult) -> RunEvent | Answered:
    """Return an event of a run as it is, and its result as the recorded answer."""
    return answer_of(store, event) if isinstance(event, AskResult) else event


# Here since its result imports the machine, which ``library.asking`` does without.


def replay(store: Store, id: Id) -> Replayed:  # noqa: A002 - what users type
    """Replay an answer from its record, and compare every event.

    Replies of models and results of searches are read from the record: no model is called and
    nothing is written. If an event differs, it is shown, and the exit code is 6.

    Examples:
      homer replay 3f2a
      homer replay 3f2a --json

    Raises:
        NotFound: there is no such trajectory.
        InputError: nothing was recorded.
        MachineChanged: another version of the machine made it.
    """
    return run_replay(store, id)
