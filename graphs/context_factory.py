"""What a run works with, as the profile names it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from agent.budget import RunBudget
from agent.model_calls import Calls
from agent.reasoners.llm import LlmReasoner
from agent.reasoners.local import MOMENTS, LocalReasoner
from agent.reasoners.port import Reasoner
from agent.recorder import Recorder
from agent.run_context import RunContext
from domain.choices import AblationStage
from domain.settings import AskSettings
from domain.view import MemoryView
from models.chat import Replay, Sink, StructuredChat
from people.corrected import people_in
from retrieval.citations import cite
from retrieval.result import ResolvedRefs
from skills.library import SkillLibrary

if TYPE_CHECKING:
    from models.toolbox import Toolbox
    from store.database import Store


class ContextFactory(Protocol):
    """Makes the desk of one run."""

    def desk(self, view: MemoryView, recorder: Recorder, meter: RunBudget) -> RunContext:
        """Reasoner, memory and the rest, for a run over ``view``."""


class ProfileContexts:
    """The profile's reasoner over the profile's retrievers, which all runs share.

    Args:
        store: the memory.
        toolbox: the models of a profile.
        ask: settings other than the profile's, for runs that have none on record.
    """

    def __init__(self, store: Store, toolbox: Toolbox, ask: AskSettings | None = None) -> None:
        from retrieval.retrievers import Retrievers

        self._store, self._toolbox = store, toolbox
        self._ask = ask or toolbox.profile.settings.ask
        whole = Retrievers(store, toolbox, toolbox.profile.settings)
        self._memories = {stage: whole.within(stage) for stage in AblationStage}
        self._skills = SkillLibrary(store, toolbox)

    def desk(self, view: MemoryView, recorder: Recorder, meter: RunBudget) -> RunContext:
        """A desk for a run over ``view``."""
        known = recorder.setup
        settings = known.settings if known else self._ask
        memory = self._memories[settings.memory]
        return RunContext(
            reasoner=self._reasoner(recorder, meter, settings),
            memory=memory,
            cite=lambda refs: self._cite(view, refs),
            settings=settings,
            recorder=recorder,
            meter=meter,
            moments=MOMENTS if self._toolbox.profile.reasoner == "local" else 0,
            people=known.people if known else self._people(view),
            skills=self._skills,
            languages=known.languages if known else self._toolbox.profile.text_languages,
        )

    def _cite(self, view: MemoryView, refs: Sequence[str]) -> ResolvedRefs:
        with self._store.begin() as session:
            return cite(session, view, refs)

    def _people(self, view: MemoryView) -> tuple[tuple[str, str], ...]:
        """Names by tag. Tags are a video's own, so several videos have none in common."""
        if len(view.scopes) > 1:
            return ()
        with self._store.begin() as session:
            people = people_in(session, view.scopes[0])
        return tuple((tag, person.name) for person in people if person.name for tag in person.tags)

    def _reasoner(self, recorder: Recorder, meter: RunBudget, settings: AskSettings) -> Reasoner:
        if self._toolbox.profile.reasoner == "local":
            return LocalReasoner()
        toolbox, store = self._toolbox, self._store

        def open_chat(sink: Sink, replay: Replay) -> StructuredChat:
            return toolbox.chat("reasoner", sink, replay, live=True)

        calls = Calls(store, recorder, meter, open_chat)
        return LlmReasoner(calls, settings, store.blobs.get)
