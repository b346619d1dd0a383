"""Changing the vectors of a library to the encoders of a profile."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from pydantic import computed_field

from domain.base import Frozen
from domain.errors import Busy, WeightsMissing
from domain.settings import Settings
from domain.words import counted, format_time
from flows.estimate import (
    CHARACTERS_A_TOKEN,
    embedding_cost,
    embedding_seconds,
    picture_seconds,
    sent_characters,
    tokens_a_character,
)
from flows.executors import connect_to_prefect, run_reported
from flows.workspace import Workspace
from memory.reembed import (
    change_encoder,
    reembed_pictures,
    reembed_video,
    some_embedded_lines,
    texts_to_embed,
)
from store.advisory_locks import claim_encoder
from store.progress import Progress
from store.queries.encoders import (
    RowsLeft,
    StoredPicture,
    begin_change,
    count_pictures_left,
    encoders_of_library,
    is_changed_to,
    rows_left,
)
from store.queries.videos import list_videos

USUAL = "minilm"
"""The text encoder that the default thresholds of cosines fit."""
FITTED_LINES, LEAST_LINES = 400, 50
"""How many lines of memory thresholds are fitted with, and how few are too few."""


class VideoLeft(Frozen):
    """A video with texts and pictures that have no vectors of the encoders.

    ``rows`` and ``characters`` are of texts.
    """

    video: str
    title: str
    rows: int
    characters: int
    pictures: int = 0


class ReembedPlan(Frozen):
    """What changing to the encoders of a profile will take.

    ``tokens`` are estimated from the characters. ``cost_usd`` is None where no price is known,
    0 for an encoder on this machine, as that of images is. ``seconds`` is None if the encoders were
    not tried. ``image_encoder``: "" if the profile has none; pictures then keep theirs.
    ``done``: it was carried out.
    """

    encoder: str
    image_encoder: str = ""
    videos: tuple[VideoLeft, ...] = ()
    tokens: int = 0
    cost_usd: float | None = 0.0
    seconds: float | None = None
    done: bool = False

    @computed_field  # type: ignore[prop-decorator]
    @property
    def rows(self) -> int:
        return sum(video.rows for video in self.videos)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def pictures(self) -> int:
        return sum(video.pictures for video in self.videos)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def characters(self) -> int:
        return sum(video.characters for video in self.videos)

    @property
    def what(self) -> str:
        counts = ((self.rows, "row"), (self.pictures, "picture"))
        return " and ".join(counted(number, noun) for number, noun in counts if number)

    def __str__(self) -> str:
        if not self.videos:
            encoders = " and ".join(filter(None, [self.encoder, self.image_encoder]))
            return f"nothing to do: all vectors are of {encoders}"
        if self.done:
            return f"{self.what} are embedded again"
        parts = [f"{self.what} of {counted(len(self.videos), 'video')}"]
        if self.rows:
            parts.append(f"{self.characters:,} characters, about {self.tokens:,} tokens")
        cost = self.cost_usd
        parts.append("at an unknown price" if cost is None else f"${cost:.4f}")
        if self.seconds is not None:
            parts.append(f"about {format_time(round(self.seconds * 1e3))}")
        return ", ".join(parts)


def plan_reembedding(workspace: Workspace, *, timed: bool = False) -> ReembedPlan:
    """Return what is left to embed with the profile's encoders.

    Args:
        timed: Embed a few sentences and a picture to estimate the time. An endpoint is asked, too.

    Raises:
        ModelError: ``timed``, and the encoder failed.
    """
    profile = workspace.profile
    texts, images = profile.text_name, profile.image_model
    with workspace.store.begin() as session:
        known = encoders_of_library(session)
        text_begun = is_changed_to(session, texts, images=False)
        pictures = "all" if known.images not in (None, images) else "new"
        pictures = "" if is_changed_to(session, images, images=True) else pictures
        counts = []
        for video in list_videos(session):
            left = RowsLeft(0, 0)
            if known.text not in (None, texts):
                left = rows_left(session, video.id, anew=not text_begun)
            of_images = count_pictures_left(session, video.id, pictures) if images else 0
            counts.append(
                VideoLeft(
                    video=video.id,
                    title=video.title,
                    rows=left.rows,
                    characters=left.characters,
                    pictures=of_images,
                )
            )
    due = tuple(one for one in counts if one.rows or one.pictures)
    plan = ReembedPlan(encoder=texts, image_encoder=images, videos=due)
    tokens = plan.characters // CHARACTERS_A_TOKEN
    if timed and plan.rows > 0 and profile.uses_endpoint:
        # What is embedded differs from what is stored by the names of people.
        embedded = (texts_to_embed(workspace.store, one.video, anew=not text_begun) for one in due)
        sent = sum(sent_characters(profile, of_video) for of_video in embedded)
        tokens = round(tokens_a_character(workspace) * sent)
    seconds = 0.0
    if timed:
        seconds += embedding_seconds(workspace, plan.characters) if plan.rows else 0.0
        seconds += picture_seconds(workspace, plan.pictures) if plan.pictures else 0.0
    return plan.model_copy(
        update={
            "tokens": tokens,
            "cost_usd": embedding_cost(profile, tokens) if plan.rows else 0.0,
            "seconds": seconds if timed and due else None,
        }
    )


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
        Busy: Another process changes the encoders of this library.
        ModelError: An encoder failed; what has new vectors keeps them.
        SetupError: The files of an encoder are missing.
        DatabaseError: The database is gone; so it is there.
    """
    # Two of one kind would undo each other's work.
    with claim_encoder(workspace.store) as claimed:
        if not claimed:
            raise Busy("another homer changes the encoder of this library: wait until it is done")
        api = None if direct else connect_to_prefect(workspace.home, on_message)
        unreadable = run_reported(
            lambda _: reembed_videos(workspace, plan, progress),
            workspace.store,
            api,
            flow="reembed",
            run=plan.encoder,
            tag="reembed",
        )
    if unreadable:
        on_message(
            f"{counted(unreadable, 'picture')} could not be read, and got no new vector: "
            "'homer check' says which files are missing"
        )


def reembed_videos(workspace: Workspace, plan: ReembedPlan, progress: Progress) -> int:
    """Embed what a plan names, then change the library over; return how many pictures are gone.

    What is watched meanwhile gets the old vectors, and is embedded before the change.
    """
    tools, store = workspace.toolbox, workspace.store
    unreadable = set[StoredPicture]()
    with store.begin() as session:
        if plan.rows:
            begin_change(session, plan.encoder, images=False)
        if plan.pictures:
            begin_change(session, plan.image_encoder, images=True)
    texts_left, pictures_left = bool(plan.rows), bool(plan.pictures)
    due = {one.video: one for one in plan.videos}
    while texts_left or pictures_left:
        with store.begin() as session:
            videos = list_videos(session)
        for video in videos:
            workspace.give_way()
            if left := due.pop(video.id, None):
                progress.start(left.title, left.rows + left.pictures)
            if texts_left:
                reembed_video(store, video.id, tools.text, progress)
            if pictures_left and tools.images is not None:
                unreadable |= reembed_pictures(store, video.id, tools.images, progress)
        texts_left = texts_left and not change_encoder(store, images=False)
        pictures_left = pictures_left and not change_encoder(store, unreadable, images=True)
    return len(unreadable)


def fitting_thresholds(workspace: Workspace) -> str:
    """Return the thresholds that fit the profile's text encoder, as lines of its TOML.

    The defaults fit ``USUAL``. They are stretched so that lines of this memory are on average as
    near as with it, and equal ones as well. "" with that encoder, without it, or with few lines.
    """
    name, tools = workspace.profile.text_name, workspace.toolbox
    texts, vectors = some_embedded_lines(workspace.store, FITTED_LINES)
    try:
        usual = None if name == USUAL or len(texts) < LEAST_LINES else tools.encoder(USUAL)
    except WeightsMissing:
        usual = None
    if usual is None:
        return ""
    before, now = _mean_cosine(usual.embed(texts)), _mean_cosine(vectors)
    stretch, default = (1 - now) / (1 - before), Settings()
    defaults = {
        "memory.same_fact": default.memory.same_fact,
        "ask.video_cosine": default.ask.video_cosine,
        "ask.skill_cosine": default.ask.skill_cosine,
    }
    fitted = {key: now + stretch * (cosine - before) for key, cosine in defaults.items()}
    return "\n".join(f"settings.{key} = {cosine:.2f}" for key, cosine in fitted.items())


def _mean_cosine(vectors: NDArray[np.float32]) -> float:
    """Return the mean cosine of all pairs of rows of length 1, shape (N, D)."""
    whole, count = vectors.sum(axis=0), len(vectors)
    return float((whole @ whole - count) / (count * (count - 1)))
