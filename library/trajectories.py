"""Questions that were asked: what led to each answer and what it cost, and comparing two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from agent.recorder import inherited_count
from domain.asking import level_of_confidence
from domain.base import Frozen
from domain.calls import CallRecord, CallTotals
from domain.media import ClipState
from domain.moments import Answered, Asked, RoundLine
from domain.people import tags_in_words
from domain.skills import StrategyChoice
from domain.trajectory import Event, Failed, ForkEdit, ModelCalled, RoundOpened
from graphs.forks import editable, fork_line
from library.answers import chosen_option, event_lines
from library.moments import moments_of
from library.params import DEFAULT_LIMIT, Id, Limit, Offset, OnCommandLine, Page, page
from library.rounds import (
    Difference,
    compare_trajectories,
    forks_among,
    load_history,
    round_headline,
)
from store.database import Store
from store.queries import trajectories as queries
from store.queries.clips import clips_of
from store.queries.trajectories import (
    EMBED,
    StoredTrajectory,
    embeddings_of,
    images_sent,
    usage_by_clip,
)


def trajectories(
    store: Store,
    query: Annotated[
        str, Field(max_length=200, description="Only questions with these words.")
    ] = "",
    offset: Offset = 0,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[Asked]:
    """List questions and their answers, the latest first, without their steps.

    Examples:
      homer trajectory list
      homer trajectory list --limit 100 --json
    """
    rows, total = page_of_trajectories(store, limit, offset, query)
    forks = forks_among(store, [row.id for row in rows])
    lines = {name: fork_line(fork) for name, fork in forks.items()}
    return page([_asked(row, fork=lines.get(row.id, "")) for row in rows], total, offset)


def page_of_trajectories(
    store: Store, limit: int, offset: int = 0, words: str = ""
) -> tuple[list[StoredTrajectory], int]:
    """Return a page of the newest trajectories, and their number."""
    with store.begin(snapshot=True) as session:
        found = queries.list_trajectories(session, limit, offset, words)
        return found, queries.count_trajectories(session, words)


def _asked(row: StoredTrajectory, **more: Any) -> Asked:
    question = row.question
    return Asked(
        id=row.id,
        question=question.text,
        videos=question.videos,
        options=question.options,
        as_of_ms=question.as_of_ms,
        profile=row.profile,
        strategy=row.machine,
        state=row.state,
        asked_at=row.started_at,
        seconds=row.seconds,
        answer=None if row.answer is None else tags_in_words(row.answer.text),
        **more,
    )


def trajectory(store: Store, id: Id) -> Asked:  # noqa: A002 - what users type
    """Show a question with the rounds that led to its answer, and the answer with citations.

    Examples:
      homer trajectory show 3f2a
      homer trajectory show 3f2a --json

    Raises:
        NotFound: there is no such trajectory.
        Ambiguous: several begin so.
    """
    history = load_history(store, id)
    rounds = [
        RoundLine(
            number=one.number,
            headline=round_headline(history, one.number),
            subtask=one.text,
            mode=None if one.action is None or one.action.mode is None else str(one.action.mode),
            query=one.action.query if one.action else "",
            found=len(one.evidence),
        )
        for one in history.rounds
    ]
    return _asked(
        history.row,
        at_work=history.at_work,
        rounds=tuple(rounds),
        result=answered(store, history.row, len(rounds), history.choice),
        errors=tuple(one.message for one in history.of(Failed)),
        choice=history.choice.why if history.choice else None,
        steps=tuple(line for event in history.events for line in event_lines(event)),
    )


def answered(
    store: Store, row: StoredTrajectory, rounds: int, choice: StrategyChoice | None
) -> Answered | None:
    """Return the answer of a recorded question, or None if it has none."""
    answer, as_of_ms = row.answer, row.question.as_of_ms
    if answer is None:
        return None
    return Answered(
        id=row.id,
        state=row.state,
        answer=tags_in_words(answer.text),
        option=answer.option,
        chosen=chosen_option(answer, row.question),
        confidence=round(answer.confidence, 4),
        confidence_level=level_of_confidence(answer.confidence),
        standing=answer.standing,
        not_in_memory=answer.not_in_memory,
        note=answer.note,
        citations=tuple(moments_of(store, answer.citations, as_of_ms)),
        retrieved=tuple(moments_of(store, answer.retrieved, as_of_ms)),
        searched=answer.searched,
        rounds=rounds,
        tokens=row.tokens,
        seconds=round(row.seconds, 3),
        choice=choice.why if choice else None,
    )


def trajectory_events(
    store: Store,
    id: Id,  # noqa: A002 - what users type
    offset: Offset = 0,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[dict[str, Any]]:
    """Print the recorded events of a trajectory: plans, searches, evidence, verdicts.

    Examples:
      homer trajectory events 3f2a --limit 100 --json

    Raises:
        NotFound: there is no such trajectory.
    """
    with store.begin(snapshot=True) as session:
        row = queries.find_trajectory(session, id)
        events, marks = queries.events_of(session, row.id), queries.marks_of(session, row.id)
    shown = [
        {**event.model_dump(mode="json"), "at": mark.at.isoformat(), "step": mark.step}
        for event, mark in [*zip(events, marks, strict=True)][offset : offset + limit]
    ]
    return page(shown, len(events), offset)


def trajectory_round(
    store: Store,
    id: Id,  # noqa: A002 - what users type
    number: Annotated[int, Field(ge=1, description="The round."), OnCommandLine(metavar="K")],
) -> ForkEdit:
    """Print the plan, action, evidence and profile of a round, to be edited.

    Pass the edited file to 'homer fork ID --round K --edit FILE'.

    Examples:
      homer trajectory round 3f2a 2 --json > round.json

    Raises:
        NotFound: there is no such trajectory or round.
    """
    with store.begin() as session:
        row = queries.find_trajectory(session, id)
        return editable(queries.events_of(session, row.id), number)


def trajectory_usage(store: Store, id: Id) -> TrajectoryUsage:  # noqa: A002 - what users type
    """Show calls, tokens, cost and time of a trajectory by purpose and by round.

    Examples:
      homer trajectory usage 3f2a

    Raises:
        NotFound: there is no such trajectory.
    """
    with store.begin() as session:
        row = queries.find_trajectory(session, id)
        return usage_in(queries.events_of(session, row.id), embeddings_of(session, row.id))


def diff(
    store: Store,
    one: Annotated[str, Field(description="Id of a trajectory."), OnCommandLine(metavar="A")],
    other: Annotated[str, Field(description="Id of another one."), OnCommandLine(metavar="B")],
) -> Difference:
    """Compare two trajectories: their actions, evidence and answers.

    Examples:
      homer diff 3f2a 81bc
      homer diff 3f2a 81bc --json

    Raises:
        NotFound: there is no such trajectory.
    """
    return compare_trajectories(load_history(store, one), load_history(store, other))


# The usage of model calls: of a trajectory by purpose and round, of a video by clip. Requests to
# an embeddings endpoint are calls of a video too.


class IngestUsage(CallTotals):
    """What language models and an embeddings endpoint took to write the memory of a video.

    ``clips`` are in memory.
    """

    clips: int
    images: int

    def __str__(self) -> str:
        """Return the usage of a clip in words; "" without any."""
        if not self.clips or not self.tokens_in + self.tokens_out:
            return ""
        images = f"{self.images / self.clips:.1f} images and " if self.images else ""
        tokens = (self.tokens_in + self.tokens_out) / self.clips
        cost = f", ${self.cost_usd:.4f} in all" if self.cost_usd else ""
        return f"{images}{tokens:,.0f} tokens a clip{cost}"


def ingest_usage(store: Store, video: str) -> IngestUsage:
    """Return what models on servers took to write the memory of a video so far."""
    with store.begin(snapshot=True) as session:
        used = sum(usage_by_clip(session, video).values(), CallTotals())
        done = [clip for clip in clips_of(session, video) if clip.state == ClipState.DONE]
        images = images_sent(session, video)
    return IngestUsage(clips=len(done), images=images, **dict(used))


class TrajectoryUsage(Frozen):
    """The calls of a trajectory; a fork's do not include those of its parent.

    ``by_round`` has the calls before the first round under 0. ``tokens_in_a_round`` is the number
    of input tokens divided by the number of rounds, 0 without rounds.
    """

    total: CallTotals
    by_purpose: dict[str, CallTotals]
    by_round: dict[int, CallTotals]
    rounds: int
    tokens_in_a_round: float


def usage_in(events: Sequence[Event], embeddings: Sequence[CallRecord] = ()) -> TrajectoryUsage:
    """Return the usage of the calls among ``events``, and of requests to an embeddings endpoint."""
    # A fork's events begin with its parent's, whose calls the parent paid for.
    own = events[inherited_count(events) :]
    calls = [event for event in own if isinstance(event, ModelCalled)]
    rounds = len({e.round for e in own if isinstance(e, RoundOpened | ModelCalled)} - {0})
    of_model = CallTotals.of(calls)
    purposes = dict.fromkeys(call.purpose for call in calls)
    by_purpose = {p: CallTotals.of(c for c in calls if c.purpose == p) for p in purposes}
    return TrajectoryUsage(
        total=CallTotals.of([*calls, *embeddings]),
        by_purpose=by_purpose | ({EMBED: CallTotals.of(embeddings)} if embeddings else {}),
        # Requests to an endpoint are of no round.
        by_round={
            r: CallTotals.of(c for c in calls if c.round == r)
            for r in sorted({call.round for call in calls})
        },
        rounds=rounds,
        tokens_in_a_round=of_model.tokens_in / rounds if rounds else 0.0,
    )
