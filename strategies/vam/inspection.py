"""Looks at frames with a question: a language model that sees, else OCR and the detector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.harness.inform import quote_untrusted
from agent.reasoners.port import Unreadable
from agent.strategy import ToolUse
from domain.errors import BlobGone, BudgetExceeded, InputError
from domain.memories import MemoryView, Scope
from domain.moments import Retrieval
from domain.time import TimeSpan, format_clock
from domain.words import make_storable
from models.messages import prompts_beside, sanitise, system, user
from retrieval.keyframe_mode import image_evidence
from retrieval.terms import terms
from strategies.event_documents import DocumentIndexes
from strategies.kept_frames import TEXT, FrameReader, KeptFrame, spread_frames
from strategies.vam.model_writer import InspectReply
from strategies.vam.policy import FRAMES, INSPECT, SEARCH, SUMMARIZE
from strategies.vam.search import Search
from strategies.vam.settings import LOOKING, InspectArguments
from strategies.vam.summaries import Summarize
from strategies.vam.times import StreamClocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.builder import AskModel
    from agent.strategy import RunTool
    from models.toolbox import Toolbox
    from store.database import Store

prompt = prompts_beside(__file__)

SEEN = 300
"""Characters of what is seen on a frame."""
SEEN_SCORE, SHOWN_SCORE = 0.6, 0.2
"""Scores of frames on which something was seen, and of others."""


class Inspection:
    """Looks at frames, of a span or of earlier results.

    Args:
        clocks: the times of day of streams.
    """

    def __init__(
        self, store: Store, indexes: DocumentIndexes, frames: FrameReader, clocks: StreamClocks
    ) -> None:
        self._store, self._indexes, self._frames = store, indexes, frames
        self._clocks = clocks

    def look(
        self, frames: Sequence[KeptFrame], question: str, model: AskModel | None, *, joint: bool
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Return what a model saw on frames, and what OCR and the detector read on others, by ref.

        ``joint``: all are shown to the model at once, else one by one.
        """
        if model is None or not model.sees:
            return {}, {one.ref: self._frames.reading(one) for one in frames}
        seen, read = dict[str, str](), dict[str, str]()
        for group in [list(frames)] if joint else [[one] for one in frames]:
            reply = self._ask(group, question, model)
            if reply is None:
                read.update({one.ref: self._frames.reading(one) for one in group})
                continue
            for one in reply.frames:
                if one.number < len(group):
                    seen[group[one.number].ref] = quote_untrusted(one.seen, SEEN)
        return seen, read

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

    def inspect(self, view: MemoryView, arguments: InspectArguments, use: ToolUse) -> Retrieval:
        """Return the frames with what is seen on them.

        Raises:
            InputError: a ref is no result in view, or frames are switched off.
        """
        if LOOKING in use.without:
            raise InputError("frames are not inspected: that part is switched off")
        found = spread_frames(list(self._named(view, arguments)), arguments.frames)
        question = make_storable(arguments.query)
        seen, readings = self.look(found, question, use.model, joint=arguments.joint)
        known = seen | readings
        scores = [SEEN_SCORE if known.get(one.ref) else SHOWN_SCORE for one in found]
        images = self._frames.show(found, scores, readings)
        evidence = tuple(
            image_evidence(one).model_copy(update={"seen": seen.get(one.ref, "")}) for one in images
        )
        words = set(terms(question))
        read = any(
            one.startswith(TEXT) or words & set(terms(one)) for one in readings.values() if one
        )
        return Retrieval(
            mode="inspect",
            query=question,
            evidence=self._clocks.named(evidence),
            images=images,
            nothing_close=not (read or any(seen.values())),
            searched=f"{len(found)} frames" if found else "no frame is kept of that time",
        )

    def _named(self, view: MemoryView, arguments: InspectArguments) -> Iterator[KeptFrame]:
        """Yield the frames that are named, each once, in order of time within each."""
        known: set[str] = set()
        spans = list[tuple[Scope, TimeSpan]]()
        for ref in arguments.refs:
            if named := self._frames.named(view, ref):
                time = named.frame.time_ms
                spans.append((named.scope, TimeSpan.of(time, time + 1)))
                continue
            found = [
                (scope, document.span)
                for scope in view.scopes
                for document in self._indexes.documents(scope)
                if document.ref == ref
            ]
            if not found:
                raise InputError(
                    f"{ref} is no result in these videos: name one that a search returned"
                )
            spans += found
        if arguments.start_s is not None and arguments.end_s is not None:
            span = TimeSpan.of(round(arguments.start_s * 1_000), round(arguments.end_s * 1_000))
            spans += [(scope, span) for scope in view.scopes]
        for scope, span in spans:
            for frame in self._frames.within(scope, span):
                if frame.ref not in known:
                    known.add(frame.ref)
                    yield frame


# VAM's tools, ready to be used; imports OpenCV.


def opened_tools(store: Store, toolbox: Toolbox, name: str) -> dict[str, RunTool]:
    """Open the tools of a strategy, which share the documents and frames that it keeps."""
    indexes = DocumentIndexes(store, toolbox.text, name)
    frames = FrameReader(store, toolbox, name)
    clocks = StreamClocks(store)
    inspection = Inspection(store, indexes, frames, clocks)
    search = Search(indexes, frames, inspection, clocks, toolbox.images)
    return {
        SEARCH: search,
        FRAMES: search.frames,
        INSPECT: inspection.inspect,
        SUMMARIZE: Summarize(store, indexes, clocks, name),
    }
