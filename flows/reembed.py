"""Changing the vectors of a library, or of some videos, to the text encoder of a profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from domain.base import Frozen
from domain.errors import Busy
from domain.time import format_clock
from flows.embedding_cost import (
    CHARACTERS_A_TOKEN,
    embedding_cost,
    embedding_seconds,
    sent_characters,
    tokens_a_character,
    uses_endpoint,
)
from flows.reporting import connect_to_prefect, report_to_prefect
from flows.workspace import Workspace
from memory.reembed import reembed_video, texts_to_embed
from store.advisory_locks import claim_encoder
from store.database import Store
from store.progress import Progress
from store.queries.reembed import rows_left
from store.queries.videos import list_videos
from views.library import resolve_video


class VideoLeft(Frozen):
    """A video with rows that another encoder made the vectors of."""

    video: str
    title: str
    rows: int
    characters: int


class ReembedPlan(Frozen):
    """What changing to an encoder will take.

    ``tokens`` are estimated from the characters. ``cost_usd`` is None where no price is known,
    0 for an encoder on this machine. ``seconds`` is None if the encoder was not tried.
    """

    encoder: str
    videos: tuple[VideoLeft, ...] = ()
    tokens: int = 0
    cost_usd: float | None = 0.0
    seconds: float | None = None

    @property
    def rows(self) -> int:
        """The number of rows to embed."""
        return sum(video.rows for video in self.videos)

    @property
    def characters(self) -> int:
        """The characters of their texts."""
        return sum(video.characters for video in self.videos)

    def __str__(self) -> str:
        """Return the plan in one line."""
        if not self.rows:
            return f"nothing to do: all vectors are of {self.encoder}"
        cost = "at an unknown price" if self.cost_usd is None else f"${self.cost_usd:.4f}"
        took = "" if self.seconds is None else f", about {format_clock(round(self.seconds * 1e3))}"
        return (
            f"{self.rows:,} rows of {len(self.videos)} video{'s' * (len(self.videos) != 1)}, "
            f"{self.characters:,} characters, about {self.tokens:,} tokens, {cost}{took}"
        )


def plan_reembedding(
    workspace: Workspace, names: Sequence[str] = (), *, timed: bool = False
) -> ReembedPlan:
    """Return what is left to embed with the profile's text encoder.

    Args:
        workspace: The store and the profile.
        names: Videos; empty: all.
        timed: Embed a few sentences to estimate the time. An endpoint is asked, too.

    Raises:
        NotFound: There is no video of a name.
        Ambiguous: There are several.
        ModelError: ``timed``, and the encoder failed.
    """
    encoder = workspace.profile.text_name
    with workspace.store.begin() as session:
        videos = [resolve_video(session, name) for name in names] or list_videos(session)
        counts = [(video, rows_left(session, video.id, encoder)) for video in videos]
    left = tuple(
        VideoLeft(video=video.id, title=video.title, rows=count.rows, characters=count.characters)
        for video, count in counts
        if count.rows
    )
    plan = ReembedPlan(encoder=encoder, videos=left)
    asked = timed and bool(left)
    tokens = _tokens(workspace, plan, asked=asked)
    return plan.model_copy(
        update={
            "tokens": tokens,
            "cost_usd": embedding_cost(workspace.profile, tokens),
            "seconds": embedding_seconds(workspace, plan.characters) if asked else None,
        }
    )


def _tokens(workspace: Workspace, plan: ReembedPlan, *, asked: bool) -> int:
    if not (asked and uses_endpoint(workspace.profile)):
        return plan.characters // CHARACTERS_A_TOKEN
    # What is embedded differs from what is stored by the names of people.
    texts = (texts_to_embed(workspace.store, one.video, plan.encoder) for one in plan.videos)
    sent = sum(sent_characters(workspace.profile, of_video) for of_video in texts)
    return round(tokens_a_character(workspace) * sent)


def reembed(
    workspace: Workspace,
    plan: ReembedPlan,
    progress: Progress,
    on_message: Callable[[str], None],
    *,
    direct: bool = False,
) -> None:
    """Embed what a plan names, from where an earlier run stopped.

    Videos may be watched and questions asked meanwhile. ``direct``: without Prefect's server.

    Raises:
        Busy: Another process changes the encoder of this library.
        ModelError: The encoder failed; what has new vectors keeps them.
        DatabaseError: The database is gone; so it is there.
    """
    with _only_one(workspace.store):
        api = None if direct else connect_to_prefect(workspace.home, on_message)
        if api is None:
            return reembed_videos(workspace, plan, progress)
        with report_to_prefect(workspace.home, api):
            # Prefect reads its settings when it is imported: now they are set.
            from flows.reembed_flow import run_reembed_flow

            run_reembed_flow(workspace, plan, progress)
    return None


def reembed_videos(workspace: Workspace, plan: ReembedPlan, progress: Progress) -> None:
    """Embed what a plan names, video by video."""
    for left in plan.videos:
        workspace.give_way()
        reembed_one(workspace, left, progress)


def reembed_one(workspace: Workspace, left: VideoLeft, progress: Progress) -> None:
    """Embed what is left of one video."""
    progress.start(left.title, left.rows)
    reembed_video(workspace.store, left.video, workspace.toolbox.text, progress)


@contextmanager
def _only_one(store: Store) -> Iterator[None]:
    """Hold the lock of changing the encoder: two encoders would undo each other's work."""
    with claim_encoder(store) as claimed:
        if not claimed:
            raise Busy("another homer changes the encoder of this library: wait until it is done")
        yield
