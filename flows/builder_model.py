"""The language model of a builder: its calls are recorded, and reused after an interruption."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from typing_extensions import Unpack

from agent.builder import AskOptions, LoadClip, Reply, no_clip, note_writer
from agent.reasoners.port import Unreadable
from domain.calls import CallRecord, CallTotals
from domain.errors import BlobGone, InputError, MediaError, ModelError
from domain.media import Video
from domain.time import TimeSpan
from flows.video_file import cut_moment
from flows.workspace import Workspace
from memory.drafts import CallRecording, ReuseCalls
from models.chat import StructuredChat
from models.messages import Message
from perception.clip_view import clip_view
from perception.decode import read_clips
from perception.source import probe
from store.queries.builds import built_at
from store.queries.rights import is_erased
from store.queries.trajectories import mean_step_of_builder


class BuilderModel:
    """The profile's model of a role, ``writer`` or ``reader``, as ``agent.builder.AskModel``.

    Each call is stored at once; after an interruption its reply is used instead of another call,
    also if it could not be read. ``use`` is what the calls took that were made, not reused.

    Args:
        strategy: the name of the strategy; the purposes of its calls begin with it.
    """

    def __init__(self, workspace: Workspace, video: Video, strategy: str, role: str) -> None:
        self._workspace, self._video, self._strategy = workspace, video, strategy
        self.role = role
        self._replied = False
        self.use = CallTotals()
        self.begin_step(-1)

    def begin_step(self, last: int) -> None:
        """Record the calls that follow with the step that ends with clip ``last``."""
        store, video = self._workspace.store, self._video.id
        with store.begin() as session:
            since = built_at(session, video, self._strategy)
        self._recording = CallRecording(store, video, last, ReuseCalls(since))
        self._chat: StructuredChat = self._workspace.toolbox.chat(
            self.role, self._record, self._recorded, live=True
        )

    def _record(self, call: CallRecord) -> None:
        self._replied = call.reply is not None
        self.use += CallTotals.of([call])
        self._recording.record(call)

    def _recorded(self, request: str) -> CallRecord | None:
        found = self._recording.recorded_reply(request)
        self._replied = found is not None and found.reply is not None
        return found

    def mean_step(self) -> CallTotals | None:
        """Return what a step of such builds took in the mean; None if none is on record."""
        with self._workspace.store.begin() as session:
            return mean_step_of_builder(session, self._chat.model, self._strategy)

    @property
    def sees(self) -> bool:
        return self._chat.sees

    def ask(
        self,
        purpose: str,
        messages: Sequence[Message],
        schema: type[Reply],
        **options: Unpack[AskOptions],
    ) -> Reply:
        """Ask for a reply in ``schema``; see ``AskModel``."""
        self._replied = False
        named = f"{self._strategy} {purpose}"
        given: AskOptions = {"temperature": 0.0, **options}
        try:
            reply = self._chat.ask(messages, schema, purpose=named, **given)
        except ModelError as error:
            raise (Unreadable(str(error)) if self._replied else error) from error
        note_writer(self._chat.model)
        return reply


def builder_model(
    workspace: Workspace, video: Video, strategy: str, *, reads: bool = False
) -> BuilderModel | None:
    """Return the language model that a strategy's memory of a video is written with, if any.

    ``reads``: where there is none to write, it is the profile's reader.

    Raises:
        SetupError: the profile names a model that is not set up.
    """
    profile = workspace.profile
    if profile.writer == "llm":
        return BuilderModel(workspace, video, strategy, "writer")
    reads = reads and profile.answering == "reader"
    return BuilderModel(workspace, video, strategy, "reader") if reads else None


# The video of a part of a video, as a builder's language model is shown it beside frames.


def clip_loader(workspace: Workspace, video: Video) -> LoadClip:
    """Return what loads the video of a span, by the setting ``memory.clip_view``.

    It is made of the video's file or recording like that of a clip that is watched, from the start
    of the span on and as long as a clip at most: more is not held in memory.

    Raises:
        SetupError: the profile's writer is to be shown videos and cannot watch any.
    """
    memory, watch = workspace.profile.shown_clips, workspace.settings.watch
    if memory.clip_view != "video" or not video.has_video:
        return no_clip

    def load(span: TimeSpan) -> bytes | None:
        with workspace.store.begin() as session:
            if is_erased(session, video.id):
                return None
        part = TimeSpan.of(span.start_ms, min(span.end_ms, span.start_ms + watch.clip_ms))
        with TemporaryDirectory() as folder:
            path = Path(folder) / "part.mp4"
            try:
                cut_moment(workspace.store, video.id, part, path)
                info = probe(path)
                with closing(read_clips(path, info, watch)) as clips:
                    raw = next(clips, None)
            except (InputError, MediaError, BlobGone):
                return None  # There is no file or recording of it here, or none that decodes.
        return None if raw is None else clip_view(raw, memory, watch).video

    return load
