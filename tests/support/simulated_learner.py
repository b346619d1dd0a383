"""A learner's world with planted patterns: what is asked, and how answers come out, is scripted.

Questions of three types. Those about *order* are right half of the time, and nearly always with the
skill that is learned from easy wins: the planted effect. Those about a *count* are mostly right,
and mostly wrong with the skill that is learned from hard wins: the planted harm. *Plain* ones are
right with two rounds, of which nothing is to be learned.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from pathlib import Path
from typing import Any, Self

from domain.asking import Answer, Mode, Question, Subtask, SubtaskState
from domain.settings import AskSettings
from domain.trajectory import Ended, Event, EvidenceRetrieved, Planned, QuestionAsked, SkillsRouted
from evals.dataset import Dataset, EvalQuestion, EvalVideo
from graphs.ask_result import AskResult
from graphs.runner import OnRecorded
from models.toolbox import Toolbox
from skills.library import SkillLibrary
from store.database import Store
from store.queries.clips import memory_view
from store.queries.trajectories import add_trajectory, append_events, end_trajectory

HELPFUL, HARMFUL = "search-win-order", "hard-win-count"
TEXTS = {
    "order": "Which cup comes first, number {n}?",
    "count": "How many birds sit quietly together, number {n}?",
    "plain": "What colour has wall {n}?",
}
ROUNDS = {"order": 1, "count": 3, "plain": 2}


def world(folder: Path, videos: int = 6, each: int = 40) -> Dataset:
    """Questions about several videos, the types taking turns."""
    made = [_video(folder, number) for number in range(videos)]
    kinds = list(TEXTS)
    asked = tuple(
        EvalQuestion(
            id=f"{number}-{n}",
            video=f"street {number}",
            question=TEXTS[kinds[n % 3]].format(n=each * number + n),
            options=("yes", "no"),
            answer="A",
            types=(kinds[n % 3],),
        )
        for number in range(videos)
        for n in range(each)
    )
    return Dataset("world", tuple(made), asked)


def _video(folder: Path, number: int) -> EvalVideo:
    path = folder / f"street {number}.jsonl"
    path.write_text(json.dumps({"start": 1, "end": 9, "text": f"Ann walks along street {number}"}))
    return EvalVideo(name=f"street {number}", captions=path)


def comes_right(kind: str, text: str, given: set[str]) -> bool:
    """Whether an answer is right, by the type of the question and its skills."""
    chances = {
        "order": 0.95 if HELPFUL in given else 0.5,
        "count": 0.1 if HARMFUL in given else 0.8,
        "plain": 1.0,
    }
    return (int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) / 2**32) < chances[kind]


class SimulatedAsker:
    """Answers as the script says, with the skills that the real library gives; all on record."""

    def __init__(
        self,
        store: Store,
        toolbox: Toolbox,
        settings: AskSettings | None = None,
        *,
        attended: bool = True,
    ) -> None:
        del attended  # Nobody waits for what is scripted.
        self._store, self._shelf = store, SkillLibrary(store, toolbox)
        self._settings = settings or AskSettings()

    def ask(self, question: Question, linked: OnRecorded | None = None) -> AskResult:
        """One answer, on record as a real one is."""
        name, kind, ask = secrets.token_hex(8), str(question.type), self._settings
        found = (
            self._shelf.route(question.text, ask.skill_cosine, ask.skill_tokens)
            if ask.skills
            else ()
        )
        right = comes_right(kind, question.text, {one.name for one in found})
        answer = Answer(text="A" if right else "B", option="A" if right else "B", confidence=0.5)
        task = Subtask(id="t1", text=question.text, state=SubtaskState.RESOLVED, attempts=1)
        rounds = ROUNDS[kind]
        searches = [
            EvidenceRetrieved(round=n, mode=Mode.VIDEO, query=f"query {n}", evidence=())
            for n in range(1, rounds + 1)
        ]
        end = Ended(state="done", why="", answer=answer, rounds=rounds, tokens=0)
        with self._store.begin() as session:
            view = memory_view(session, question.videos)
            add_trajectory(session, name, question, view, "homer", "local")
            if linked is not None:
                linked(session, name)
            first = QuestionAsked(
                question=question,
                machine="homer",
                version=1,
                profile="local",
                reasoner="planted",
                view=view,
            )
            output: list[Event] = [
                first, SkillsRouted(skills=found), Planned(subtasks=(task,)), *searches, end
            ]  # fmt: skip
            cursor: Any = session.connection().connection.cursor()
            append_events(cursor, name, 0, output)
            end_trajectory(session, name, "done", answer, 0, 0.1)
        return AskResult(name, answer, rounds, 0, 0.1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass
