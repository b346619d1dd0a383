"""Memory as a llama-index vector store.

Importing this module imports llama-index, which takes seconds: import it where it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from llama_index.core.bridge.pydantic import ConfigDict, PrivateAttr
from llama_index.core.schema import BaseNode, TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from domain.errors import InputError
from domain.memories import MemoryView, Scope
from retrieval.people_in_query import line_text
from store.database import Store
from store.queries.candidates import Restriction, near_lines, read_lines
from store.queries.characters import characters_at
from store.queries.clips import memory_view
from store.queries.search import StoredLine
from store.queries.videos import find_video, list_videos

VIDEO, AS_OF_MS, PERSON, SPEAKER = "video", "as_of_ms", "person", "speaker"
"""Filter keys: a video (id or title), a moment, a person mentioned (name or tag), a speaker."""
DEFAULT_LINES = 10
"""Number of lines if a query does not give one."""


class MemoryVectorStore(BasePydanticVectorStore):
    """The lines of memory with their vectors; read-only: memory is written by watching videos.

    A query may be filtered by ``video`` (``==`` or ``in``), ``as_of_ms``, ``person`` (in one video)
    and ``speaker``. A node's id is the ref that an answer cites, such as ``m12``.

    Args:
        store: The store. Lines with a vector of another size than a query's are left out.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    stores_text: bool = True
    is_embedding_query: bool = True
    _store: Store = PrivateAttr()

    def __init__(self, store: Store) -> None:
        super().__init__(stores_text=True)
        self._store = store

    @property
    def client(self) -> Store:
        return self._store

    def add(self, nodes: Sequence[BaseNode], **_: Any) -> list[str]:
        """Refuse: memory is written by watching.

        Raises:
            InputError: Always.
        """
        raise InputError(f"{len(nodes)} nodes: memory is written by `homer ingest` only")

    def delete(self, ref_doc_id: str, **_: Any) -> None:
        """Refuse: memory is deleted by Homer's own commands.

        Raises:
            InputError: Always.
        """
        raise InputError(f"{ref_doc_id}: memory is deleted by `homer delete` and `homer forget`")

    def query(self, query: VectorStoreQuery, **_: Any) -> VectorStoreQueryResult:
        """Find the lines nearest to a query vector.

        Raises:
            InputError: The query has no vector or an unknown filter, or nobody has that name.
            NotFound: There is no such video.
        """
        if query.query_embedding is None:
            raise InputError("memory is searched by vectors: give the query an embedding")
        vector = np.asarray(query.query_embedding, dtype=np.float32)
        view, restriction = self._restricted(query.filters)
        limit = query.similarity_top_k or DEFAULT_LINES
        with self._store.begin() as session:
            lines = near_lines(session, view.scopes, vector, limit, restriction)
            rows = read_lines(session, [line.id for line in lines])
        return VectorStoreQueryResult(
            nodes=[node_of(line.video, rows[line.id]) for line in lines],
            similarities=[1 - line.distance for line in lines],
            ids=[f"m{line.id}" for line in lines],
        )

    def _restricted(self, filters: MetadataFilters | None) -> tuple[MemoryView, Restriction]:
        equalities: dict[str, Any] = {}
        for condition in filters.filters if filters else ():
            if not isinstance(condition, MetadataFilter) or condition.operator not in (
                FilterOperator.EQ,
                FilterOperator.IN,
            ):
                raise InputError("memory is filtered by == and in only")
            equalities[condition.key] = condition.value
        videos = equalities.pop(VIDEO, None)
        as_of = equalities.pop(AS_OF_MS, None)
        person, speaker = equalities.pop(PERSON, None), equalities.pop(SPEAKER, None)
        if equalities:
            raise InputError(f"memory cannot be filtered by {', '.join(sorted(equalities))}")
        with self._store.begin() as session:
            names = [videos] if isinstance(videos, str) else videos
            ids = (
                [video.id for video in list_videos(session)]
                if names is None
                else [find_video(session, str(name)).id for name in names]
            )
            view = memory_view(session, ids, None if as_of is None else int(as_of))
            identities = () if person is None else _identities(session, view.scopes, str(person))
        return view, Restriction(identities=identities, speaker=speaker)


def _identities(session: Any, scopes: Sequence[Scope], person: str) -> tuple[int, ...]:
    """Return the identity rows of a person, by name or tag, in a view of one video."""
    if len(scopes) != 1:
        raise InputError("a person is somebody of one video: filter by the video too")
    scope = scopes[0]
    for person_at in characters_at(session, scope.video, scope.last_clip):
        names = {*person_at.character.tags, (person_at.character.name or "").casefold()}
        if person and {person, person.casefold()} & names:
            return tuple(person_at.members)
    raise InputError(f"nobody in this video is known as {person!r}: `homer people` lists them")


def node_of(video: str, line: StoredLine, names: Mapping[str, str] | None = None) -> TextNode:
    """Make a node of a line: its text as shown, its video and times as metadata."""
    metadata = {
        VIDEO: video,
        "start_ms": line.start_ms,
        "end_ms": line.end_ms,
        "clip": line.clip,
        "source": line.source,
    }
    keys = list(metadata)
    return TextNode(
        id_=f"m{line.id}",
        text=line_text(line, names or {}),
        metadata=metadata,
        excluded_embed_metadata_keys=keys,
        excluded_llm_metadata_keys=keys,
    )
