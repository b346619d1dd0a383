"""VAM's inspection: frames of a span or of earlier results, looked at with a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.strategy import ToolUse
from domain.errors import InputError
from domain.memories import MemoryView, Scope
from domain.texts import make_storable
from domain.time import TimeSpan
from retrieval.keyframe_mode import image_evidence
from retrieval.result import Retrieval
from strategies.kept_frames import KeptFrame, spread_frames
from strategies.vam.arguments import InspectArguments
from strategies.vam.parts import LOOKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from strategies.document_index import DocumentIndexes
    from strategies.kept_frames import FrameReader
    from strategies.vam.inspection import Inspection
    from strategies.vam.wall_clock import StreamClocks

SEEN_SCORE, SHOWN_SCORE = 0.6, 0.2
"""Scores of frames on which something was seen, and of others."""


class Inspect:
    """Looks at frames.

    Args:
        clocks: the times of day of streams.
    """

    def __init__(
        self,
        indexes: DocumentIndexes,
        frames: FrameReader,
        inspection: Inspection,
        clocks: StreamClocks,
    ) -> None:
        self._indexes, self._frames = indexes, frames
        self._inspection, self._clocks = inspection, clocks

    def __call__(self, view: MemoryView, arguments: InspectArguments, use: ToolUse) -> Retrieval:
        """Return the frames with what is seen on them.

        Raises:
            InputError: a ref is no result in view, or frames are switched off.
        """
        if LOOKING in use.without:
            raise InputError("frames are not inspected: that part is switched off")
        found = spread_frames(list(self._named(view, arguments)), arguments.frames)
        question = make_storable(arguments.query)
        looked = self._inspection.look(found, question, use.model, joint=arguments.joint)
        known = looked.seen | looked.read
        scores = [SEEN_SCORE if known.get(one.ref) else SHOWN_SCORE for one in found]
        images = self._frames.show(found, scores, looked.read)
        evidence = tuple(
            image_evidence(one).model_copy(update={"seen": looked.seen.get(one.ref, "")})
            for one in images
        )
        return Retrieval(
            mode="inspect",
            query=question,
            evidence=self._clocks.named(evidence),
            images=images,
            nothing_close=not looked.bears_on(question),
            searched=f"{len(found)} frames" if found else "no frame is kept of that time",
        )

    def _named(self, view: MemoryView, arguments: InspectArguments) -> Iterator[KeptFrame]:
        """Yield the frames that are named, each once, in order of time within each."""
        known: set[str] = set()
        spans = [span for ref in arguments.refs for span in self._spans(view, ref)]
        if arguments.start_s is not None and arguments.end_s is not None:
            span = TimeSpan.of(round(arguments.start_s * 1_000), round(arguments.end_s * 1_000))
            spans += [(scope, span) for scope in view.scopes]
        for scope, span in spans:
            for frame in self._frames.within(scope, span):
                if frame.ref not in known:
                    known.add(frame.ref)
                    yield frame

    def _spans(self, view: MemoryView, ref: str) -> list[tuple[Scope, TimeSpan]]:
        """Return where a result is.

        Raises:
            InputError: nothing in view has that ref.
        """
        if frame := self._frames.named(view, ref):
            time = frame.frame.time_ms
            return [(frame.scope, TimeSpan.of(time, time + 1))]
        spans = [
            (scope, document.span)
            for scope in view.scopes
            for document in self._indexes.documents(scope)
            if document.ref == ref
        ]
        if not spans:
            raise InputError(f"{ref} is no result in these videos: name one that a search returned")
        return spans
