"""The memory as retrievers and tools of LangChain and LlamaIndex, for programs."""

from __future__ import annotations

from typing import Annotated

from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool
from llama_index.core.retrievers import BaseRetriever as LlamaIndexRetriever
from pydantic import Field

from domain.asking import Mode
from flows.workspace import Workspace
from library.params import AsOf, Videos
from retrieval.adapters import as_langchain_retriever, as_langchain_tools, as_llama_index
from retrieval.search_once import view_of_names

SearchMode = Annotated[Mode, Field(description="What to find: event, video or keyframe.")]


def as_retriever(
    workspace: Workspace, video: Videos = (), mode: SearchMode = Mode.VIDEO, as_of: AsOf = None
) -> BaseRetriever:
    """Return a LangChain retriever over the videos as they are now."""
    view, _ = view_of_names(workspace.store, video, as_of)
    return as_langchain_retriever(workspace.retrievers, view, mode)


def as_llama_index_retriever(
    workspace: Workspace, video: Videos = (), mode: SearchMode = Mode.VIDEO, as_of: AsOf = None
) -> LlamaIndexRetriever:
    """Return a LlamaIndex retriever over the videos as they are now."""
    view, _ = view_of_names(workspace.store, video, as_of)
    return as_llama_index(workspace.retrievers, view, mode)


def as_tools(workspace: Workspace, video: Videos = (), as_of: AsOf = None) -> list[BaseTool]:
    """Return LangChain tools that search the videos as they are now."""
    view, _ = view_of_names(workspace.store, video, as_of)
    return as_langchain_tools(workspace.retrievers, view)
