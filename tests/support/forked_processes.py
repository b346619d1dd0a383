"""Processes of tests that are to be killed: forks of a server that has imported everything once."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from typing import Any

LOADED = (
    "tests.support.chaos",
    "tests.support.killed_evaluations",
    "tests.support.storm",
    # What is imported where it is first needed: else each process would do so anew.
    "graphs.context_factory",
    "httpcore2",
    "langchain.chat_models.base",
    "langchain_openai",
    "langgraph.graph",
    "retrieval.retrievers",
    "retrieval.preparation",
    "memory.writers.llm_clip",
    "memory.writers.llm_event",
    "memory.writers.local_clip",
    "models.objects_and_texts",
    "openai.resources.chat.completions.completions",
    "psycopg_pool",
    "truststore",
)
"""The server is the first fork's, so these are whatever any of them needs."""


def forked(target: Callable[..., Any], *arguments: object, daemon: bool = False) -> BaseProcess:
    """Starts a process that calls ``target``."""
    context = get_context("forkserver")
    context.set_forkserver_preload(list(LOADED))
    process = context.Process(target=target, args=arguments, daemon=daemon)
    process.start()
    return process
