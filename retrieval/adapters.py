"""The four modes as LangChain tools, and as retrievers of LangChain and LlamaIndex."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever as LangChainRetriever
from langchain_core.tools import BaseTool, StructuredTool

from domain.asking import PICTURES_NOT_SEARCHED, Evidence, Mode
from domain.errors import InputError
from domain.memories import MemoryView
from domain.moments import Retrieval
from retrieval.retrievers import Retrievers

if TYPE_CHECKING:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle


ABOUT = {
    Mode.EVENT: "Find the part of the video where something went on. Gives its segment, such as "
    "s12, and the segments it is connected with.",
    Mode.VIDEO: "Look closer at a segment: what was said, read and seen in it, moment by moment.",
    Mode.NEIGHBOR: "Move along an edge from a segment to the one whose label is the query.",
    Mode.KEYFRAME: "Look at the images of a segment, best match first, as descriptions.",
}
_SEGMENT = re.compile(r"\[?s([1-9]\d{0,17})\]?")


def as_langchain_tools(retrievers: Retrievers, view: MemoryView) -> list[BaseTool]:
    """Return one tool for each mode over a view: ``search_event``, ``search_video``...

    A tool takes ``query`` and ``focus`` (a segment such as ``s12``, or nothing). It returns text
    with the refs that an answer cites, and the ``Retrieval`` as its artifact. An invalid request
    returns the error as text, so that a model can try again.
    """
    return [_tool(retrievers, view, mode) for mode in Mode]


def _tool(retrievers: Retrievers, view: MemoryView, mode: Mode) -> BaseTool:
    def search(query: str, focus: str | None = None) -> tuple[str, Retrieval | None]:
        try:
            result = retrievers.search(view, mode, query, _segment(focus))
        except InputError as error:
            return str(error), None
        return as_text(result), result

    return StructuredTool.from_function(
        search,
        name=f"search_{mode}",
        description=ABOUT[mode],
        response_format="content_and_artifact",
    )


def _segment(focus: str | None) -> int | None:
    """Parse the id in ``s12``; None for no focus.

    Raises:
        InputError: The text is not the ref of a segment.
    """
    if not focus:
        return None
    match = _SEGMENT.fullmatch(focus.strip())
    if match is None:
        raise InputError(f"{focus!r} is no segment: a focus is given as s12")
    return int(match[1])


def as_text(result: Retrieval) -> str:
    """Format a retrieval as lines: its segment, its evidence, and its neighbours."""
    lines = ["Nothing close was found; what was nearest:"] if result.nothing_close else []
    lines += [PICTURES_NOT_SEARCHED] if result.nothing_close and result.unseen else []
    if result.focus is not None:
        lines.append(f"[s{result.focus.id}] {result.focus.span} {result.focus.label}")
    lines += [f"[{one.ref}] {one.span} {one.text}" for one in result.evidence]
    lines += [f"near: {segment.label} [s{segment.id}]" for segment in result.neighbours]
    return "\n".join(lines) or "Nothing was found."


def as_langchain_retriever(
    retrievers: Retrievers, view: MemoryView, mode: Mode
) -> LangChainRetriever:
    """Return a retriever for one mode over a view; document ids are refs such as ``m12``."""

    class _LangChain(LangChainRetriever):
        def _get_relevant_documents(
            self, query: str, *, run_manager: CallbackManagerForRetrieverRun
        ) -> list[Document]:
            del run_manager
            return [
                Document(
                    id=one.ref,
                    page_content=one.text,
                    metadata=_metadata(one) | {"score": one.score},
                )
                for one in retrievers.search(view, mode, query).evidence
            ]

    return _LangChain()


def _metadata(evidence: Evidence) -> dict[str, str | int | float]:
    span = evidence.span
    return {"video": evidence.video, "start_ms": span.start_ms, "end_ms": span.end_ms}


def as_llama_index(
    retrievers: Retrievers, view: MemoryView, mode: Mode, focus: int | None = None
) -> BaseRetriever:
    """Return a retriever for one mode over a view; node ids are refs such as ``m12``."""
    from llama_index.core.retrievers import BaseRetriever

    class _Retriever(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            result = retrievers.search(view, mode, query_bundle.query_str, focus)
            return [_node(evidence) for evidence in result.evidence]

    return _Retriever()


def _node(evidence: Evidence) -> NodeWithScore:
    from llama_index.core.schema import NodeWithScore, TextNode

    metadata = _metadata(evidence)
    keys = list(metadata)
    node = TextNode(
        id_=evidence.ref,
        text=evidence.text,
        metadata=metadata,
        excluded_embed_metadata_keys=keys,
        excluded_llm_metadata_keys=keys,
    )
    return NodeWithScore(node=node, score=evidence.score)
