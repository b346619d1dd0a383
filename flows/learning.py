"""Learning from judged answers, batch after batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agent.reasoners.concluding import kind_of
from domain.calls import CallRecord
from retrieval.terms import content_words
from skills.learn import BATCH, LearningResult, learn
from skills.writer import LlmSkillWriter, LocalSkillWriter, SkillWriter
from store.queries.trajectories import add_call

if TYPE_CHECKING:
    from domain.asking import Question
    from flows.workspace import Workspace
    from models.chat import StructuredChat


def learn_in_batches(workspace: Workspace) -> Iterator[LearningResult]:
    """Learn from every answer judged since the last time, a batch at a time."""
    writer = skill_writer(workspace)
    while True:
        workspace.give_way()
        batch = learn(workspace.store, writer, content_words)
        if batch.answers:
            yield batch
        if batch.answers < BATCH:
            return


def skill_writer(workspace: Workspace) -> SkillWriter:
    """Return the profile's skill writer: a language model, whose calls are recorded, or rules."""
    if workspace.profile.reasoner == "local":
        return LocalSkillWriter()

    def record(call: CallRecord) -> None:
        with workspace.store.begin() as session:
            add_call(session, call)

    def chat() -> StructuredChat:
        return workspace.toolbox.chat("learner", record)

    return LlmSkillWriter(chat)


def question_type(question: Question) -> str:
    """Return the type that the data set gives a question, else one derived from its words."""
    return question.type or str(kind_of(question.text))
