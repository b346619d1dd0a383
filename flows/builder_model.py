"""The language model of a builder: its calls are recorded, and reused after an interruption."""

from __future__ import annotations

from collections.abc import Sequence

from agent.ask_model import Reply
from agent.reasoners.port import Unreadable
from domain.errors import ModelError
from domain.media import Video
from flows.workspace import Workspace
from memory.writer_calls import CallRecording
from models.chat import CallRecord, StructuredChat
from models.messages import Message


class BuilderModel:
    """The profile's model of the role ``writer``, as ``agent.ask_model.AskModel``.

    Each call is stored at once; after an interruption its reply is used instead of another call.

    Args:
        workspace: has the model and the store.
        video: the video.
        strategy: the name of the strategy; the purposes of its calls begin with it.
    """

    def __init__(self, workspace: Workspace, video: Video, strategy: str) -> None:
        self._workspace, self._video, self._strategy = workspace, video, strategy
        self._replied = False
        self.begin_step(-1)

    def begin_step(self, last: int) -> None:
        """Record the calls that follow with the step that ends with clip ``last``."""
        self._recording = CallRecording(self._workspace.store, self._video.id, last, window=True)
        self._chat: StructuredChat = self._workspace.toolbox.chat(
            "writer", self._record, self._recording.recorded_reply, live=True
        )

    def _record(self, call: CallRecord) -> None:
        self._replied = call.reply is not None
        self._recording.record(call)

    @property
    def sees(self) -> bool:
        """Check whether the model accepts images."""
        return self._chat.sees

    def ask(
        self,
        purpose: str,
        messages: Sequence[Message],
        schema: type[Reply],
        *,
        temperature: float = 0.0,
        images: Sequence[bytes] = (),
        labels: Sequence[str] = (),
    ) -> Reply:
        """Ask for a reply in ``schema``; see ``AskModel``."""
        self._replied = False
        named = f"{self._strategy} {purpose}"
        try:
            reply = self._chat.ask(
                messages,
                schema,
                purpose=named,
                temperature=temperature,
                images=images,
                labels=labels,
            )
        except ModelError as error:
            raise (Unreadable(str(error)) if self._replied else error) from error
        return reply.value


def builder_model(workspace: Workspace, video: Video, strategy: str) -> BuilderModel | None:
    """Return the language model that a strategy's memory of a video is written with, if any.

    Raises:
        SetupError: the profile names a model that is not set up.
    """
    llm = workspace.profile.writer == "llm"
    return BuilderModel(workspace, video, strategy) if llm else None
