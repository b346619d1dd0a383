"""Looks at frames with a question: a language model that sees, else OCR and the detector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from agent.harness.inform import quote_untrusted
from agent.reasoners.port import Unreadable
from domain.errors import BlobGone, BudgetExceeded
from domain.time import format_clock
from memory.prompts import sanitise
from models.messages import system, user
from retrieval.terms import terms
from strategies.kept_frames import TEXT
from strategies.vam.prompts import prompt
from strategies.vam.replies import InspectReply

if TYPE_CHECKING:
    from agent.ask_model import AskModel
    from store.database import Store
    from strategies.kept_frames import FrameReader, KeptFrame

SEEN = 300
"""Characters of what is seen on a frame."""


class Looked(NamedTuple):
    """What a model saw on frames, and what OCR and the detector read on others, by their refs."""

    seen: dict[str, str]
    read: dict[str, str]

    def bears_on(self, question: str) -> bool:
        """Check whether anything was seen, text was read, or a thing of the question detected."""
        words = set(terms(question))
        readings = [one for one in self.read.values() if one]
        read = any(one.startswith(TEXT) or words & set(terms(one)) for one in readings)
        return read or any(self.seen.values())


class Inspection:
    """Looks at frames."""

    def __init__(self, store: Store, frames: FrameReader) -> None:
        self._store, self._frames = store, frames

    def look(
        self, frames: Sequence[KeptFrame], question: str, model: AskModel | None, *, joint: bool
    ) -> Looked:
        """Return what is seen or read on frames.

        ``joint``: all are shown to the model at once, else one by one.
        """
        looked = Looked({}, {})
        if model is None or not model.sees:
            self._read(frames, looked)
            return looked
        for group in [list(frames)] if joint else [[one] for one in frames]:
            reply = self._ask(group, question, model)
            if reply is None:
                self._read(group, looked)
                continue
            for one in reply.frames:
                if one.number < len(group):
                    looked.seen[group[one.number].ref] = quote_untrusted(one.seen, SEEN)
        return looked

    def _read(self, frames: Sequence[KeptFrame], looked: Looked) -> None:
        looked.read.update({one.ref: self._frames.reading(one) for one in frames})

    def shows(self, frames: Sequence[KeptFrame], question: str, model: AskModel) -> bool:
        """Check with a model that sees whether frames show what is asked; yes without a reply."""
        reply = self._ask(frames, question, model)
        return reply is None or reply.shown

    def _ask(
        self, frames: Sequence[KeptFrame], question: str, model: AskModel
    ) -> InspectReply | None:
        """Show frames to a model; None where none can be shown or no reply can be read."""
        images, labels = [], []
        for number, one in enumerate(frames):
            try:
                images.append(self._store.blobs.get(one.frame.blob))
            except BlobGone:
                continue
            labels.append(f"frame {number}, {format_clock(one.frame.time_ms)}")
        if not images:
            return None
        page = prompt("inspect", question=sanitise(question or "What is on these frames?"))
        asked = [system(prompt("inspect_system")), user(page)]
        try:
            return model.ask("inspect", asked, InspectReply, images=images, labels=labels)
        except (Unreadable, BudgetExceeded):
            return None
