"""The language model that writes recaps, where a profile has one for writing."""

from __future__ import annotations

from domain.media import Video
from flows.builder_model import BuilderModel, builder_model
from flows.recap import ModelFor
from flows.workspace import Workspace
from store.queries.recaps import BUILDER


def recap_model(workspace: Workspace) -> ModelFor:
    """Return what makes the model of a video's recap; its calls are recorded with the video."""

    def model_for(video: Video, clip: int) -> BuilderModel | None:
        model = builder_model(workspace, video, BUILDER)
        if model is not None:
            model.begin_step(clip)
        return model

    return model_for
