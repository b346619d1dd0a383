"""Training data from judged answers, and the environment that it is trained in."""

from __future__ import annotations

import inspect
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from domain.asking import Question
from domain.errors import InputError
from domain.rights import Deed
from domain.skills import JudgedTrajectory
from domain.time import TimeSpan
from domain.trajectory import ForkEdit
from evals.training.export import (
    MANIFEST,
    PROMPTS,
    TRAJECTORIES,
    TrainingManifest,
    environment_of,
    export_training,
    read_manifest,
    read_prompts,
)
from graphs.context_factory import StrategyTools
from memory.delete_span import delete_span
from people.forget import forget
from skills.learn import judge
from store.database import Store
from store.queries.rights import audit_entries
from strategies.registry import find_strategy, strategy_names
from tests.support.asking import PARTY, WordToolbox
from tests.support.caption_evaluations import evaluate, houses
from tests.support.remembered import WordEmbedder
from tests.support.runs import ask, fork

RAG = find_strategy("plain-rag")
CHOICE = Question(text="Who opens the gate?", videos=(PARTY,), options=("Bob", "Ann", "a dog"))
OPEN = Question(text="What does Bob play on the piano?", videos=(PARTY,))


def judged(store: Store, question: Question, *, right: bool, strategy: str = RAG.name) -> str:
    """Ask and judge; return the trajectory."""
    name = ask(store, WordToolbox(), question, strategy=strategy).trajectory_id
    judge(store, JudgedTrajectory(trajectory=name, question_type="who", right=right))
    return name


def exported(store: Store, folder: Path, **more: Any) -> TrainingManifest:
    return export_training(store, RAG, WordToolbox().profile.name, folder, **more)


def rows(folder: Path, name: str = TRAJECTORIES) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_judged_answers_are_exported_with_their_rewards(party: Store, tmp_path: Path) -> None:
    right, wrong = judged(party, CHOICE, right=True), judged(party, OPEN, right=False)
    judged(party, CHOICE, right=True, strategy="homer")
    ask(party, WordToolbox(), CHOICE, strategy=RAG.name)
    fork(party, WordToolbox(), right, 1, ForkEdit())
    made = exported(party, tmp_path / "out")
    assert (made.trajectories, made.right, made.prompts, made.open_questions) == (2, 1, 1, 1)
    first, second = rows(tmp_path / "out")
    assert (first["trajectory"], first["reward"]) == (right, 1.0)
    assert (second["trajectory"], second["reward"], second["answer"]) == (wrong, 0.0, "")
    assert [one["role"] for one in first["prompt"]] == ["system", "user"]
    assert "A. Bob\nB. Ann\nC. a dog" in first["prompt"][1]["content"]
    (call,) = first["completion"][0]["tool_calls"]
    assert call["function"]["name"] == "nearest"
    assert call["function"]["arguments"]["query"]
    result, answer = first["completion"][1:]
    assert (result["role"], result["name"]) == ("tool", "nearest")
    assert "Ann opens the wooden gate" in result["content"]
    assert answer == {"role": "assistant", "content": f"\\boxed{{{first['answer']}}}"}


def test_a_prompt_is_exported_once_with_view_of_its_question(party: Store, tmp_path: Path) -> None:
    for question in (CHOICE, CHOICE, CHOICE.model_copy(update={"as_of_ms": 60_000})):
        judged(party, question, right=True)
    assert exported(party, tmp_path / "out").prompts == 2
    late, before = read_prompts(tmp_path / "out")
    assert "asked at 01:00 of the video" in before["prompt"][1]["content"]
    scopes = [json.loads(row["view"])["scopes"][0]["last_clip"] for row in (late, before)]
    assert scopes[0] > scopes[1]


def test_the_right_answer_is_of_the_data_set(store: Store, party: Store, tmp_path: Path) -> None:
    judged(party, CHOICE, right=False)
    assert exported(party, tmp_path / "own").prompts == 0
    evaluate(store, houses(tmp_path, 1), strategies=[RAG.name])
    assert exported(party, tmp_path / "set").prompts == 2
    assert {row["answer"] for row in read_prompts(tmp_path / "set")} == {"A", "B"}


def erase_person(store: Store) -> None:
    forget(store, PARTY, "Ann", WordEmbedder())


def erase_span(store: Store) -> None:
    settings = WordToolbox().profile.settings.memory
    delete_span(store, PARTY, TimeSpan.of(0, 30_000), WordEmbedder(), settings)


@pytest.mark.parametrize("erase", [erase_person, erase_span])
def test_what_is_forgotten_or_deleted_is_not_exported(
    party: Store, tmp_path: Path, erase: Callable[[Store], None]
) -> None:
    question = OPEN.model_copy(update={"text": "Who opens the gate?", "options": ("he", "she")})
    judged(party, question, right=True)
    exported(party, tmp_path / "out")
    assert "Ann opens the wooden gate" in (tmp_path / "out" / TRAJECTORIES).read_text()
    erase(party)
    with pytest.raises(InputError, match="no answer of plain-rag was judged yet"):
        exported(party, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    judged(party, question, right=True)
    exported(party, tmp_path / "again")
    assert "Ann opens" not in (tmp_path / "again" / TRAJECTORIES).read_text()


def test_an_export_is_complete_private_and_on_the_audit_log(party: Store, tmp_path: Path) -> None:
    judged(party, CHOICE, right=True)
    out = tmp_path / "below" / "out"
    made = exported(party, out)
    assert read_manifest(out) == made
    assert {path.name for path in out.iterdir()} == {PROMPTS, TRAJECTORIES, MANIFEST}
    assert {stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()} == {0o600}
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    with party.begin() as session:
        assert Deed.EXPORTED in {entry.deed for entry in audit_entries(session)}


def test_an_earlier_export_is_replaced_and_nothing_else(party: Store, tmp_path: Path) -> None:
    judged(party, CHOICE, right=True)
    out = tmp_path / "out"
    exported(party, out)
    judged(party, CHOICE, right=True)
    assert exported(party, out).trajectories == 2
    (out / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="has other files in it"):
        exported(party, out)
    assert (out / "mine.txt").read_text() == "mine"
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(InputError, match="is not a folder"):
        exported(party, file)
    with pytest.raises(InputError, match="cannot be written"):
        exported(party, file / "below")


def test_a_failed_export_leaves_the_earlier_one(
    party: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(party, CHOICE, right=True)
    out = tmp_path / "below" / "out"
    made = exported(party, out)
    judged(party, CHOICE, right=True)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evals.training.export.open_private", full)
    with pytest.raises(InputError, match="No space left"):
        exported(party, out)
    assert (read_manifest(out), [path.name for path in out.parent.iterdir()]) == (made, ["out"])


def test_an_export_that_cannot_be_put_in_place_leaves_the_earlier_one(
    party: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(party, CHOICE, right=True)
    out, rename = tmp_path / "out", Path.rename
    exported(party, out)
    before = (out / TRAJECTORIES).read_text()

    def fail_for_new(self: Path, target: Path) -> Path:
        if self.name.endswith("-new"):
            raise OSError("no room")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_for_new)
    with pytest.raises(InputError, match="cannot be written"):
        exported(party, out)
    assert (out / TRAJECTORIES).read_text() == before


def test_a_folder_that_is_no_export_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no export of 'homer train export'"):
        read_manifest(tmp_path)
    (tmp_path / MANIFEST).write_text('{"format": 1}')
    with pytest.raises(InputError, match="no export of 'homer train export'"):
        read_manifest(tmp_path)


def opened(store: Store, row: dict[str, Any]) -> Any:
    toolbox = WordToolbox()
    made = environment_of(RAG, toolbox.profile, StrategyTools(store, toolbox))()
    made.reset(**row)
    return made


def test_environment_has_tools_over_the_view_of_the_question(party: Store, tmp_path: Path) -> None:
    for question in (CHOICE, CHOICE.model_copy(update={"as_of_ms": 30_000})):
        judged(party, question, right=True)
    exported(party, tmp_path / "out")
    late, before = read_prompts(tmp_path / "out")
    query = "Bob plays a song on the piano"
    assert "piano" in opened(party, late).nearest(query=query)
    assert "piano" not in opened(party, before).nearest(query=query)


def test_a_wrong_argument_is_said_to_the_model(party: Store, tmp_path: Path) -> None:
    judged(party, CHOICE, right=True)
    exported(party, tmp_path / "out")
    (row,) = read_prompts(tmp_path / "out")
    with pytest.raises(InputError, match="nearest: lines"):
        opened(party, row).nearest(query="the gate", lines="many")


@pytest.mark.parametrize("name", strategy_names())
def test_every_tool_of_every_strategy_says_what_it_takes(store: Store, name: str) -> None:
    toolbox, strategy = WordToolbox(), find_strategy(name)
    made = environment_of(strategy, toolbox.profile, StrategyTools(store, toolbox))
    members = inspect.getmembers(made, predicate=inspect.isfunction)
    public = {name for name, _ in members if not name.startswith("_")}
    assert public == {"reset", *strategy.tools_for(toolbox.profile)}
    for tool in strategy.tools_for(toolbox.profile):
        method = getattr(made(), tool)
        assert strategy.tool(tool).description.split()[0] in (method.__doc__ or "")
        for argument in inspect.signature(method).parameters:
            assert f"    {argument}: " in method.__doc__


def test_an_export_that_sets_more_than_the_recipe_is_refused(party: Store, tmp_path: Path) -> None:
    judged(party, CHOICE, right=True)
    exported(party, tmp_path / "out")
    assert read_manifest(tmp_path / "out").grpo["beta"] == 0
    file = tmp_path / "out" / MANIFEST
    manifest = json.loads(file.read_text())
    manifest["grpo"] |= {"push_to_hub": True}
    file.write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="sets push_to_hub"):
        read_manifest(tmp_path / "out")
