"""Makes the context of a run, as the profile says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from agent.budget import RunBudget
from agent.model_calls import Calls
from agent.reasoners.llm import LlmReasoner
from agent.reasoners.local import MOMENTS, LocalReasoner
from agent.reasoners.port import Reasoner
from agent.recorder import Recorder
from agent.run_context import RunContext, SearchableMemory
from domain.evaluation_options import AblationStage
from domain.memories import MemoryView
from domain.settings import AskSettings
from models.chat import Replay, Sink, StructuredChat
from people.corrected import people_as_of
from retrieval.citations import cite
from retrieval.result import ResolvedRefs
from retrieval.retrievers import Retrievers
from skills.library import SkillLibrary

if TYPE_CHECKING:
    from models.toolbox import Toolbox
    from store.database import Store


class ContextFactory(Protocol):
    """Makes the context of a run."""

    def make_context(self, view: MemoryView, recorder: Recorder, budget: RunBudget) -> RunContext:
        """Make the context of a run over ``view``."""


class ProfileContexts:
    """Contexts with the profile's reasoner and its retrievers, which all runs share.

    Args:
        store: the memory.
        toolbox: the models of a profile.
        ask: settings other than the profile's, for runs without recorded ones.
    """

    def __init__(self, store: Store, toolbox: Toolbox, ask: AskSettings | None = None) -> None:
        self._store, self._toolbox = store, toolbox
        self._ask = ask or toolbox.profile.settings.ask
        retrievers = Retrievers(store, toolbox, toolbox.profile.settings)
        self._memories: dict[AblationStage, SearchableMemory] = {
            stage: retrievers.restricted_to(stage)
            for stage in AblationStage
            if stage is not AblationStage.PLAIN
        }
        self._skills = SkillLibrary(store, toolbox)

    def make_context(self, view: MemoryView, recorder: Recorder, budget: RunBudget) -> RunContext:
        """Make the context of a run over ``view``."""
        setup = recorder.setup
        settings = setup.settings if setup else self._ask
        memory = self._memory(settings.memory)
        return RunContext(
            reasoner=self._reasoner(recorder, budget, settings),
            memory=memory,
            cite=lambda refs: self._cite(view, refs),
            settings=settings,
            recorder=recorder,
            budget=budget,
            moments=MOMENTS if self._toolbox.profile.reasoner == "local" else 0,
            people=setup.people if setup else self._people(view),
            skills=self._skills,
            languages=setup.languages if setup else self._toolbox.profile.search_languages,
        )

    def _memory(self, stage: AblationStage) -> SearchableMemory:
        if stage not in self._memories:
            # Imports llama-index, which takes seconds.
            from retrieval.plain_rag import PlainRag

            self._memories[stage] = PlainRag(self._store, self._toolbox.text)
        return self._memories[stage]

    def _cite(self, view: MemoryView, refs: Sequence[str]) -> ResolvedRefs:
        with self._store.begin() as session:
            return cite(session, view, refs)

    def _people(self, view: MemoryView) -> tuple[tuple[str, str], ...]:
        """Return names by tag; none for several videos, since tags are a video's own."""
        if len(view.scopes) > 1:
            return ()
        with self._store.begin() as session:
            people = people_as_of(session, view.scopes[0])
        return tuple((tag, person.name) for person in people if person.name for tag in person.tags)

    def _reasoner(self, recorder: Recorder, budget: RunBudget, settings: AskSettings) -> Reasoner:
        if self._toolbox.profile.reasoner == "local":
            return LocalReasoner()
        toolbox, store = self._toolbox, self._store

        def open_chat(sink: Sink, replay: Replay) -> StructuredChat:
            return toolbox.chat("reasoner", sink, replay, live=True)

        calls = Calls(store, recorder, budget, open_chat)
        return LlmReasoner(calls, settings, store.blobs.get, recorder.version)
