"""Documents of events of a video, read once and shared by the questions that follow."""

from __future__ import annotations

from functools import cached_property, lru_cache

from domain.built import BuiltMemory, StoredNode
from domain.memories import Scope
from models.ports import TextEmbedder
from people.corrected import people_as_of
from retrieval.built_indexes import BuiltIndexes, check_built, holds
from retrieval.closeness import CosineScale, cosine_scale
from retrieval.people_in_query import view_people, with_current_names
from store.database import Store
from strategies.event_documents import EVENT, OPEN, EventDocument, EventDocuments


class VideoDocuments:
    """The documents of a video."""

    def __init__(self, built: BuiltMemory) -> None:
        self.encoder = built.encoder
        last = max((node.number for node in built.nodes if node.level == EVENT), default=-1) + 1
        nodes = [node for node in built.nodes if node.vector is not None]
        self.named = lru_cache(maxsize=1)(
            lambda names: [(node, _document(node, dict(names), last)) for node in nodes]
        )
        """Return all revisions, each with its document, where people have these sorted names."""


class DocumentIndexes:
    """The documents of the videos asked about last. Thread-safe.

    Args:
        text: the model that the memory was built with.
    """

    def __init__(self, store: Store, text: TextEmbedder, builder: str) -> None:
        self._store, self.text = store, text
        self._indexes = BuiltIndexes(store, builder, VideoDocuments)

    @cached_property
    def scale(self) -> CosineScale:
        """Return the scale of the model's cosines."""
        return cosine_scale(self.text)

    def documents(self, scope: Scope) -> EventDocuments:
        """Return the documents that a question may see, with people by their current names.

        Raises:
            InputError: nothing was built, or with another text encoder.
        """
        built = self._indexes.of(scope.video)
        check_built(scope.video, built.encoder, self.text.name)
        with self._store.begin() as session:
            people = people_as_of(session, scope)
        names = view_people({scope.video: people}).names(scope.video)
        revisions = built.named(tuple(sorted(names.items())))
        known = [document for node, document in revisions if holds(node, scope.last_clip)]
        return EventDocuments(known, self.scale)


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
