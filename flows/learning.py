"""Learning from judged answers, batch after batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agent.reasoners.question_parts import kind_of
from retrieval.terms import content_words
from skills.learn import BATCH, LearningResult, learn
from skills.llm_writer import LlmSkillWriter
from skills.writer import LocalSkillWriter, SkillWriter
from store.queries.calls import NewCall, add_call

if TYPE_CHECKING:
    from domain.asking import Question
    from flows.workspace import Workspace
    from models.chat import CallRecord, StructuredChat


def learn_all(desk: Workspace) -> Iterator[LearningResult]:
    """Learn from every answer that was judged since the last time, a batch at a time."""
    writer = skill_writer(desk)
    while True:
        desk.give_way()
        batch = learn(desk.store, writer, content_words)
        if batch.answers:
            yield batch
        if batch.answers < BATCH:
            return


def skill_writer(desk: Workspace) -> SkillWriter:
    """The profile's writer: its language model where it has one, whose calls are recorded."""
    if desk.profile.reasoner == "local":
        return LocalSkillWriter()

    def keep(call: CallRecord) -> None:
        with desk.store.begin() as session:
            add_call(session, NewCall(**vars(call)))

    def chat() -> StructuredChat:
        return desk.toolbox.chat("learner", keep)

    return LlmSkillWriter(chat)


def type_of(question: Question) -> str:
    """The type that the data set gave a question, else what its words say."""
    return question.type or str(kind_of(question.text))
