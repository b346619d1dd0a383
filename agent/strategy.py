"""A strategy: one way of remembering videos and of answering questions from that memory.

All strategies share the watched videos, the store, the recorder, replays and forks, the checks of
answers and the evaluations. A strategy answers from what its own tools returned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import ValidationError

from agent.budget import RunBudget
from agent.builder import MemoryBuilder
from agent.model_calls import Calls
from agent.reasoners.port import DecisionContext, Responder
from domain.asking import Action
from domain.base import Frozen
from domain.errors import InputError, NotFound
from domain.memories import MemoryView
from retrieval.result import Retrieval

if TYPE_CHECKING:
    from models.toolbox import Toolbox
    from store.database import Store


class ToolArguments(Frozen):
    """Base of the arguments of tools; unknown ones are refused."""

    query: str = ""


class RunTool(Protocol):
    """A tool that is ready to be used on a library."""

    def __call__(self, view: MemoryView, arguments: Any, seen: frozenset[str], /) -> Retrieval:
        """Return what the tool finds.

        Args:
            view: the videos, each up to which clip.
            arguments: of the tool's own type.
            seen: the refs that were shown already.

        Raises:
            InputError: an argument does not fit what is in memory; the message says which.
        """


@dataclass(frozen=True)
class Tool:
    """A way to look something up in memory.

    ``description`` and the fields of ``arguments`` are shown to language models. ``open`` makes the
    tool ready; models are loaded when it is first used.
    """

    name: str
    description: str
    arguments: type[ToolArguments]
    open: Callable[[Store, Toolbox], RunTool]

    def parse(self, action: Action) -> ToolArguments:
        """Return the arguments of an action, checked.

        Raises:
            InputError: one is unknown, missing or of the wrong kind; the message says which.
        """
        try:
            return self.arguments.model_validate({**action.arguments, "query": action.query})
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "arguments"
            raise InputError(f"{self.name}: {where}: {first['msg']}") from error


class AgentPolicy(Responder, Protocol):
    """Decides what a strategy does in each round of the tool loop, and answers."""

    def act(self, decision: DecisionContext, /) -> Action:
        """Use one of the tools, or answer.

        Raises:
            Unreadable: a model's reply is not an action.
            ModelError: the model cannot be reached.
        """

    def rescue(self, decision: DecisionContext, /) -> Action:
        """Return the action for a round in which every reply was refused."""


@dataclass(frozen=True)
class PolicyParts:
    """What a policy may use: the profile's responder, and calls to its model if it has one."""

    responder: Responder
    calls: Calls | None
    budget: RunBudget


@dataclass(frozen=True)
class Strategy:
    """A registered strategy.

    ``version`` is on record with each trajectory; those from ``oldest_replayed`` on replay the
    same. ``builds`` is what it keeps of a video, besides what every strategy sees; ``needs`` is
    what it cannot do without. ``paper`` is where it is described. ``policy`` is None for a machine
    that decides with the profile's reasoner; ``rounds``: at most, None: as the settings say.
    ``builder`` is None for a strategy that keeps nothing of its own.
    """

    name: str
    title: str
    paper: str
    builds: str
    needs: str
    version: int
    machine: str
    tools: tuple[Tool, ...]
    oldest_replayed: int = 1
    policy: Callable[[PolicyParts], AgentPolicy] | None = None
    builder: Callable[[], MemoryBuilder] | None = None
    rounds: int | None = None

    def tool(self, name: str) -> Tool:
        """Return the tool of that name.

        Raises:
            NotFound: the strategy has none; the message lists those that it has.
        """
        for tool in self.tools:
            if tool.name == name:
                return tool
        names = ", ".join(tool.name for tool in self.tools)
        raise NotFound(f"{self.name} has no tool {name!r}: use one of {names}")

    def replays(self, version: int) -> bool:
        """Check whether records made by this version of the strategy replay the same."""
        return self.oldest_replayed <= version <= self.version


RunNamedTool = Callable[[Tool, MemoryView, ToolArguments, frozenset[str]], Retrieval]
"""Runs a tool over a view with its arguments; the refs are those that were shown already."""


@dataclass(frozen=True)
class ToolLoop:
    """What the steps of the tool loop use: the strategy, its policy, and its open tools."""

    strategy: Strategy
    policy: AgentPolicy
    run_tool: RunNamedTool
