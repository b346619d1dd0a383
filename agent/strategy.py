"""A strategy: one way of remembering videos and of answering questions from that memory.

All strategies share the watched videos, the store, the recorder, replays and forks, the checks of
answers and the evaluations. A strategy answers from what its own tools returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from pydantic import Field, ValidationError

from agent.builder import AskModel, MemoryBuilder, WindowBuilder
from agent.harness.inform import LoadImage
from agent.model_calls import Calls, RunBudget
from agent.reasoners.port import Conclusion, DecisionContext, Responder
from domain.asking import MOST_OPTIONS, Action
from domain.base import Frozen
from domain.built import OutlineLevel
from domain.errors import InputError, NotFound
from domain.memories import MemoryView
from domain.moments import Retrieval
from domain.settings import AskSettings

if TYPE_CHECKING:
    from models.profile import Profile
    from models.toolbox import Toolbox
    from perception.frame_keeper import FrameKeeper, HeldEvent, State
    from store.database import Store


class ToolArguments(Frozen):
    """Base of the arguments of tools; unknown ones are refused."""

    query: str = ""


LONGEST_OPTION = 4_000
"""Most characters of an option that a tool scores by."""

Options = Annotated[
    tuple[Annotated[str, Field(max_length=LONGEST_OPTION)], ...], Field(max_length=MOST_OPTIONS)
]
"""The options of a question, as a tool's argument."""


@dataclass(frozen=True)
class ToolUse:
    """The circumstances in which a tool is used.

    ``seen`` are the refs that were shown already; ``model`` is None without a language model;
    ``without`` are the parts of the strategy that are switched off.
    """

    seen: frozenset[str] = frozenset()
    model: AskModel | None = None
    without: frozenset[str] = frozenset()


class RunTool(Protocol):
    """A tool that is ready to be used on a library."""

    def __call__(self, view: MemoryView, arguments: Any, use: ToolUse, /) -> Retrieval:
        """Return what the tool finds.

        Args:
            view: the videos, each up to which clip.
            arguments: of the tool's own type.

        Raises:
            InputError: an argument does not fit what is in memory; the message says which.
            Unreadable: a model's reply does not fit, and there is no way without it.
            ModelError: the model cannot be reached.
        """


OpenTools = Callable[["Store", "Toolbox"], Mapping[str, RunTool]]
"""Makes the tools of a strategy ready, by name; models are loaded when they are first used."""


@dataclass(frozen=True)
class Tool:
    """A way to look something up in memory.

    ``description`` and the fields of ``arguments`` are shown to language models. ``needs`` says
    whether a profile has the models for it; None: every profile has.
    """

    name: str
    description: str
    arguments: type[ToolArguments]
    needs: Callable[[Profile], bool] | None = None

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
    """What a policy may use."""

    # The profile's.
    responder: Responder
    # To its language model; None without one.
    calls: Calls | None
    budget: RunBudget
    settings: AskSettings
    # Loads a JPEG by its SHA-256.
    load_image: LoadImage
    # The profile's image-text model; "" without one.
    image_model: str = ""
    # Those that are offered, and the parts of the strategy that are switched off.
    tools: tuple[Tool, ...] = ()
    without: frozenset[str] = frozenset()


AUTO = "auto"
"""In place of a strategy's name: the one that was learned for questions like the one asked."""

WITHOUT = "-without-"
"""Between the name of a strategy and its parts that are switched off."""


@dataclass(frozen=True)
class Strategy:
    """A registered strategy."""

    name: str
    title: str
    # Where it is described.
    paper: str
    # What it keeps of a video, besides what every strategy sees.
    builds: str
    # What it cannot do without.
    needs: str
    # It is on record with each trajectory, and only those of this one are replayed: raise it when
    # the same record would lead to other events.
    version: int
    machine: str
    tools: tuple[Tool, ...]
    open_tools: OpenTools
    # None for a machine that decides with the profile's reasoner.
    policy: Callable[[PolicyParts], AgentPolicy] | None = None
    # None for a strategy that builds nothing in the tables that strategies share.
    builder: Callable[[], MemoryBuilder] | None = None
    # None for one without tables of its own.
    windows: Callable[[], WindowBuilder] | None = None
    # None for one that keeps no frames.
    keeper: Callable[[], FrameKeeper] | None = None
    # Its own rounds, and how often a reply is sent back; settings that somebody chose may allow
    # fewer. None: as the settings say.
    rounds: int | None = None
    retries: int | None = None
    # What those rounds may need, unless somebody chose a budget.
    tokens: int | None = None
    # What can be switched off to measure what it adds, each with what it is.
    parts: Mapping[str, str] = field(default_factory=dict)
    # The parts that are switched off, and tools by the part with which they are.
    without: frozenset[str] = frozenset()
    part_tools: Mapping[str, str] = field(default_factory=dict)
    # Those of the nodes that an outline of its memory has, coarse ones first; a node is made of
    # those of the next level that begin in its span.
    levels: tuple[OutlineLevel, ...] = ()
    # The levels of nodes by the type of the entities that stand for them, which are named by a
    # node's number.
    node_types: Mapping[str, str] = field(default_factory=dict)
    # Reads the events of its short-term memory from what its keeper carried on.
    short_term: Callable[[State], Sequence[HeldEvent]] | None = None
    # Names of the tiers of its kept frames, from 0 on; without names there is one.
    tiers: tuple[str, ...] = ()

    @property
    def memory(self) -> str:
        """Return the name under which its memory is stored, whatever is switched off."""
        return self.name.partition(WITHOUT)[0]

    @property
    def builds_memory(self) -> bool:
        """Check whether it keeps anything of its own."""
        parts = (self.builder, self.windows, self.keeper)
        return any(part is not None for part in parts)

    @property
    def switched_on(self) -> tuple[Tool, ...]:
        """Return the tools without those of parts that are switched off."""
        off = {self.part_tools.get(part) for part in self.without}
        return tuple(tool for tool in self.tools if tool.name not in off)

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

    def tools_for(self, profile: Profile) -> tuple[str, ...]:
        """Return the names of the tools that a profile has the models for."""
        tools = (tool for tool in self.switched_on if tool.needs is None or tool.needs(profile))
        return tuple(tool.name for tool in tools)

    def narrowed_tools(self, profile: Profile) -> tuple[str, ...]:
        """Return the same where a profile may lack the models for some, else none: all are."""
        narrows = any(tool.needs is not None for tool in self.tools)
        return self.tools_for(profile) if narrows else ()

    def switched_off(self, parts: str) -> Strategy:
        """Return the strategy without these of its parts, joined by ``-``.

        Raises:
            NotFound: it has no such part; the message lists those that it has.
        """
        asked = frozenset(parts.split("-"))
        if unknown := sorted(asked - self.parts.keys()):
            names = ", ".join(self.parts) or "none"
            raise NotFound(f"{self.name} has no part {unknown[0]!r} to switch off: it has {names}")
        name = self.name + WITHOUT + "-".join(part for part in self.parts if part in asked)
        return replace(self, name=name, without=asked)

    def ablations(self) -> Iterator[Strategy]:
        """Yield the strategy without each of its parts, then without all if there are several."""
        yield from map(self.switched_off, self.parts)
        if len(self.parts) > 1:
            yield self.switched_off("-".join(self.parts))

    def settings_from(self, settings: AskSettings) -> AskSettings:
        """Return the settings of a run by this strategy."""
        # Its own rounds and retries, or fewer if set; its own token budget unless one is set.
        own = {"rounds": self.rounds, "retries": self.retries}
        limits = {name: limit for name, limit in own.items() if limit is not None}
        for name in limits.keys() & settings.model_fields_set:
            limits[name] = min(limits[name], getattr(settings, name))
        if self.tokens is not None and "tokens" not in settings.model_fields_set:
            limits["tokens"] = self.tokens
        return settings.model_copy(update={"strategy": self.name, **limits})


RunNamedTool = Callable[[Strategy, Tool, MemoryView, ToolArguments, ToolUse], Retrieval]
"""Runs a tool of a strategy over a view with its arguments, under the circumstances."""


@dataclass(frozen=True)
class ToolLoop:
    """What the steps of the tool loop use.

    ``calls`` are to the profile's language model, None without one; ``offered`` are the names of
    the tools that the policy may use.
    """

    strategy: Strategy
    policy: AgentPolicy
    run_tool: RunNamedTool
    calls: Calls | None
    offered: tuple[str, ...]


# A policy by rules: each tool is used once with the question, then the answer is given.


class SearchEach:
    """Uses each tool once with the question, and answers from everything that was found.

    Args:
        parts: what a policy may use; the profile's model or rules answer.
        reasons: why each tool is used, by its name, in the order of using them.
        done: why it answers then.
        note: what the user must know besides what the responder says.
    """

    def __init__(
        self, parts: PolicyParts, reasons: Mapping[str, str], done: str, note: str = ""
    ) -> None:
        self._responder, self._reasons, self._done = parts.responder, reasons, done
        self.name = parts.responder.name
        self.note = " ".join(part for part in (parts.responder.note, note) if part)

    def act(self, decision: DecisionContext) -> Action:
        """Use the next tool with the question and its options; then answer."""
        made = {search.found.mode for search in decision.searches}
        options = [option[:LONGEST_OPTION] for option in decision.question.options]
        for tool, reason in self._reasons.items():
            if tool not in made:
                return Action(
                    kind="search",
                    reason=reason,
                    mode=tool,
                    query=decision.question.text,
                    arguments={"options": options} if options else {},
                )
        return Action(kind="answer", reason=self._done)

    def rescue(self, decision: DecisionContext) -> Action:
        """Return the same: the rules do not depend on replies."""
        return self.act(decision)

    def conclude(self, decision: DecisionContext) -> Conclusion:
        """Answer with the profile's model or rules."""
        return self._responder.conclude(decision)
