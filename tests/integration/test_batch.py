"""Many questions: in a file, at once, and again after a stop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from domain.asking import Question
from domain.errors import ModelError
from graphs.ask_result import AskResult
from graphs.concurrent import answered_ids, read_questions, run_batch, write_batch
from graphs.runner import Runner
from models.toolbox import Toolbox
from store.database import Store
from tests.support.asking import PARTY, WordToolbox

LINES: list[dict[str, Any]] = [
    {"id": "a", "video": PARTY[:6], "question": "What does Bob play?"},
    {"id": 7, "video": PARTY, "question": "Who opens the gate?", "options": ["Bob", "Ann"]},
    {"id": "c", "video": PARTY, "question": "What does Bob play?", "as_of_s": 90.5},
]


def written(path: Path, *lines: Any) -> Path:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def test_every_question_gets_a_line_and_none_is_asked_again(party: Store, tmp_path: Path) -> None:
    questions = read_questions(written(tmp_path / "q.jsonl", *LINES, ""))
    out = tmp_path / "sub" / "answers.jsonl"
    results = list(write_batch(out, run_batch(party, WordToolbox(), questions, workers=2)))
    assert ([r.finished for r in results], {r.total for r in results}) == ([1, 2, 3], {3})
    lines = {line["id"]: line for line in map(json.loads, out.read_text().splitlines())}
    assert (set(lines), lines[7]["option"]) == ({"a", 7, "c"}, "B")
    assert "option" not in lines["a"]
    assert all(e["end_s"] <= 90.0 for e in lines["c"]["retrieved"])
    assert answered_ids(out) == {"a", 7, "c"}
    assert list(run_batch(party, WordToolbox(), questions, answered_ids(out))) == []


class Unlucky(Runner):
    """Cannot reach its model for one of the questions."""

    def ask(self, question: Question, *args: Any, **more: Any) -> AskResult:
        if question.options:
            raise ModelError("the connection was refused")
        return super().ask(question, *args, **more)


def unlucky(store: Store, toolbox: Toolbox) -> Runner:
    return Unlucky(store, toolbox)


def test_a_failed_question_stops_no_other_and_is_asked_again(party: Store, tmp_path: Path) -> None:
    questions = read_questions(written(tmp_path / "q.jsonl", *LINES))
    out = tmp_path / "answers.jsonl"
    failing = run_batch(party, WordToolbox(), questions, workers=2, make=unlucky)
    results = {r.id: r for r in write_batch(out, failing)}
    assert isinstance(results[7].error, ModelError)
    assert results[7].line is None
    assert answered_ids(out) == {"a", "c"}
    again = list(run_batch(party, WordToolbox(), questions, answered_ids(out)))
    assert [(r.id, r.error) for r in again] == [(7, None)]
