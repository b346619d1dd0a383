"""Documents of events of a video, read once and shared by the questions that follow."""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import cached_property

from domain.built import BuiltMemory, StoredNode
from domain.errors import InputError
from domain.memories import Scope
from models.ports import TextEmbedder
from people.corrected import people_as_of
from retrieval.closeness import CosineScale, cosine_scale
from retrieval.people_in_query import view_people, with_current_names
from store.database import Store
from store.queries.builds import built_version, read_built
from strategies.event_documents import EVENT, OPEN, EventDocument, EventDocuments

CACHED = 4
"""Videos whose memory is held at a time."""


class VideoDocuments:
    """The documents of a video with people by the names that they have."""

    def __init__(self, built: BuiltMemory, names: dict[str, str]) -> None:
        events = [node.number for node in built.nodes if node.level == EVENT]
        last = max(events, default=-1) + 1
        self._spans = [
            (node.to_clip, _document(node, names, last))
            for node in built.nodes
            if node.vector is not None
        ]

    def as_of(self, clip: int, scale: CosineScale) -> EventDocuments:
        """Return the documents that hold after a clip."""
        return EventDocuments(
            [
                document
                for to_clip, document in self._spans
                if document.from_clip <= clip and (to_clip is None or to_clip > clip)
            ],
            scale,
        )


class DocumentIndexes:
    """The documents of the videos asked about last. Thread-safe.

    Args:
        store: the store.
        text: the model that the memory was built with.
        builder: the name under which it was built.
    """

    def __init__(self, store: Store, text: TextEmbedder, builder: str) -> None:
        self._store, self.text, self._builder = store, text, builder
        self._held: OrderedDict[str, tuple[object, VideoDocuments]] = OrderedDict()
        self._lock = threading.Lock()

    @cached_property
    def scale(self) -> CosineScale:
        """Return the scale of the model's cosines."""
        return cosine_scale(self.text)

    def documents(self, scope: Scope) -> EventDocuments:
        """Return the documents that a question may see.

        Raises:
            InputError: nothing was built, or with another text encoder.
        """
        return self._of(scope).as_of(scope.last_clip, self.scale)

    def _of(self, scope: Scope) -> VideoDocuments:
        video = scope.video
        with self._lock, self._store.begin(snapshot=True) as session:
            people = people_as_of(session, scope)
            names = view_people({video: people}).names(video)
            version = (built_version(session, video, self._builder), tuple(sorted(names.items())))
            held = self._held.get(video)
            if held is None or held[0] != version:
                built = read_built(session, video, self._builder)
                self._check(video, built)
                held = (version, VideoDocuments(built, names))
            self._held[video] = held
            self._held.move_to_end(video)
            while len(self._held) > CACHED:
                self._held.popitem(last=False)
            return held[1]

    def _check(self, video: str, built: BuiltMemory) -> None:
        if built.through_clip < 0:
            raise InputError(
                f"nothing was built of {video} for this strategy yet: homer build {video}"
            )
        if built.encoder != self.text.name:
            raise InputError(
                f"what was built of {video} has vectors of {built.encoder}, this profile searches "
                f"with {self.text.name}: build it anew with homer build {video}"
            )


def _document(node: StoredNode, names: dict[str, str], last: int) -> EventDocument:
    if node.vector is None:
        raise ValueError("a document without text is not searched")
    return EventDocument(
        number=last if node.level == OPEN else node.number,
        span=node.span,
        text=with_current_names(node.text, names),
        vector=node.vector,
        id=node.id,
        level=node.level,
        from_clip=node.from_clip,
    )
