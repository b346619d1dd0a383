"""Writes documents of events and summaries with a language model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from agent.ask_model import AskModel
from agent.builder import BuildModels
from agent.pictures import LoadImage
from agent.reasoners.port import Unreadable
from domain.built import BuiltFrame
from domain.errors import BlobGone
from domain.time import TimeSpan, format_clock
from memory.prompts import join_lines, sanitise, sanitise_generated
from models.messages import assistant, system, user
from strategies.kept_frames import spread_frames
from strategies.vam.prompts import prompt
from strategies.vam.replies import WrittenLines
from strategies.vam.settings import VisualMemorySettings
from strategies.vam.wall_clock import clock_words


class DocumentWriter:
    """Writes the documents of events. It needs a language model.

    Args:
        models: the language model, and what loads images.
    """

    def __init__(self, models: BuildModels, settings: VisualMemorySettings) -> None:
        self._models, self._settings = models, settings

    def document(
        self, span: TimeSpan, lines: Sequence[str], frames: Sequence[BuiltFrame]
    ) -> list[str]:
        """Return the lines of an event, from what is known of it, its frames and its video.

        Raises:
            Unreadable: no reply can be read.
        """
        model = self._models.model
        if model is None:
            return list(lines)
        shown = spread_frames(frames, self._settings.document_frames) if model.sees else []
        images, labels = load_frames(shown, self._models.load_image)
        if model.sees and (video := self._models.load_clip(span)) is not None:
            images.append(video)
            labels.append(f"a video with sound, from {format_clock(span.start_ms)}")
        rules = prompt("document_system", lines=self._settings.document_lines)
        page = prompt("document", lines=shown_lines(lines), **clock_times(span, self._models.began))
        return write_lines(model, "document", rules, page, lines, images, labels)


def write_lines(
    model: AskModel,
    purpose: str,
    rules: str,
    page: str,
    material: Iterable[str],
    images: Sequence[bytes] = (),
    labels: Sequence[str] = (),
) -> list[str]:
    """Ask for lines, once more with the complaints if they cannot be used.

    Raises:
        Unreadable: they cannot be used then either.
    """
    messages = [system(rules), user(page)]
    known = list(material)

    def ask(name: str) -> WrittenLines:
        return model.ask(name, messages, WrittenLines, images=images, labels=labels)

    try:
        reply = ask(purpose)
        wrong = reply.complaints(known)
        messages.append(assistant(reply.model_dump_json()))
    except Unreadable as error:
        wrong = [str(error)]
    if wrong:
        messages.append(user(repair_page(wrong)))
        reply = ask(f"{purpose}-repair")
        if wrong := reply.complaints(known):
            raise Unreadable(wrong[0])
    return reply.texts


def repair_page(complaints: Iterable[str]) -> str:
    """Return the request to reply again."""
    return prompt("repair", complaints=join_lines(f"- {sanitise(one)}" for one in complaints))


def shown_lines(lines: Iterable[str]) -> str:
    """Return lines as material of a prompt."""
    return join_lines(map(sanitise_generated, lines))


def clock_times(span: TimeSpan, began: datetime | None) -> dict[str, str]:
    """Return the slots of a prompt that say when something is, of a stream by the clock too."""
    end = format_clock(span.end_ms)
    day = f" of the video, {clock_words(began, span)} by the clock" if began else ""
    return {"start": format_clock(span.start_ms), "end": f"{end}{day}"}


def load_frames(frames: Iterable[BuiltFrame], load: LoadImage) -> tuple[list[bytes], list[str]]:
    """Load frames with their times as labels; those whose files are gone are left out."""
    images, labels = [], []
    for frame in frames:
        try:
            images.append(load(frame.blob))
        except BlobGone:
            continue
        labels.append(format_clock(frame.time_ms))
    return images, labels
