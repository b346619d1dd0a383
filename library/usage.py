"""The usage of model calls: of a trajectory by purpose and round, of a video by clip.

Requests to an embeddings endpoint are calls of a video too.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.replay_source import inherited_count
from domain.base import Frozen
from domain.calls import CallRecord, CallTotals
from domain.media import ClipState
from domain.trajectory import Event, ModelCalled, RoundOpened
from store.database import Store
from store.queries.clips import clips_of
from store.queries.trajectories import EMBED, images_sent, usage_by_clip


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
    """Return the usage of the calls among ``events``, and of requests to an embeddings endpoint.

    Those of an endpoint are of no round.
    """
    own = events[inherited_count(events) :]
    calls = [event for event in own if isinstance(event, ModelCalled)]
    rounds = len({e.round for e in own if isinstance(e, RoundOpened | ModelCalled)} - {0})
    of_model = CallTotals.of(calls)
    purposes = dict.fromkeys(call.purpose for call in calls)
    by_purpose = {p: CallTotals.of(c for c in calls if c.purpose == p) for p in purposes}
    return TrajectoryUsage(
        total=CallTotals.of([*calls, *embeddings]),
        by_purpose=by_purpose | ({EMBED: CallTotals.of(embeddings)} if embeddings else {}),
        by_round={
            r: CallTotals.of(c for c in calls if c.round == r)
            for r in sorted({call.round for call in calls})
        },
        rounds=rounds,
        tokens_in_a_round=of_model.tokens_in / rounds if rounds else 0.0,
    )
