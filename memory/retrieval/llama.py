"""A search mode as a llama-index ``BaseRetriever``, for use with anything of that ecosystem.

llama-index takes seconds to import, so it is imported when a retriever is asked for, not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.asking import Evidence, Mode
from domain.view import MemoryView
from memory.retrieval.retrievers import Retrievers

if TYPE_CHECKING:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle


def as_llama_index(
    retrievers: Retrievers, view: MemoryView, mode: Mode, focus: int | None = None
) -> BaseRetriever:
    """One mode over one view; each node's id is the ref of its evidence, such as ``m12``."""
    from llama_index.core.retrievers import BaseRetriever

    class _Retriever(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            found = retrievers.search(view, mode, query_bundle.query_str, focus)
            return [_node(one) for one in found.evidence]

    return _Retriever()


def _node(evidence: Evidence) -> NodeWithScore:
    from llama_index.core.schema import NodeWithScore, TextNode

    metadata = {
        "video": evidence.video,
        "start_ms": evidence.span.start_ms,
        "end_ms": evidence.span.end_ms,
    }
    keys = list(metadata)
    node = TextNode(
        id_=evidence.ref,
        text=evidence.text,
        metadata=metadata,
        excluded_embed_metadata_keys=keys,
        excluded_llm_metadata_keys=keys,
    )
    return NodeWithScore(node=node, score=evidence.score)
