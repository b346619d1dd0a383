"""The commands about trajectories: going on, looking, replaying, forking, comparing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from retrieval.retrievers import Retrievers
from store.database import Store
from tests.support.asking import WordToolbox, remember_party
from tests.support.obedient_model import LlmToolbox, obedient
from tests.support.openai_server import OpenAIServer

Homer = Callable[..., Result]
QUESTION = ("ask", "Who opens the gate?", "-o", "Bob", "-o", "Ann", "--json")


@pytest.fixture
def homer(store: Store, monkeypatch: pytest.MonkeyPatch) -> Homer:
    """Runs a command on a library that knows the party, without weights."""
    remember_party(store)
    monkeypatch.setenv("HOMER_DATABASE_URL", store.url)
    monkeypatch.setattr("flows.workspace.Toolbox", lambda _profile, _weights: WordToolbox())
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def data(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def asked(homer: Homer) -> str:
    return str(data(homer(*QUESTION))["id"])


def test_a_broken_off_question_goes_on(homer: Homer, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = data(homer(*QUESTION))
    # A question whose second search fails.
    real, made = Retrievers.search, []

    def search(*args: Any, **more: Any) -> Any:
        made.append(1)
        if len(made) == 2:
            raise RuntimeError("the power went out")
        return real(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Retrievers, "search", search)
        failed = homer(*QUESTION)
    assert failed.exit_code == 1
    assert "the power went out" in failed.stderr
    name = str(data(homer("trajectory", "--json"))[0]["id"])
    assert f"homer resume {name}" in homer("trajectory", name).stdout
    resumed = data(homer("resume", name[:9], "--json"))
    assert resumed["id"] == name
    for field in ("answer", "option", "confidence", "citations", "retrieved", "rounds"):
        assert resumed[field] == whole[field]
    again = homer("resume", name)
    assert "answered already" in again.stdout
    assert "B. Ann" in again.stdout


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (("resume", "ffff"), "no trajectory goes by 'ffff'"),
        (("resume", ""), "no trajectory goes by ''"),
        (("replay", "ffff"), "no trajectory goes by 'ffff'"),
        (("fork", "ffff", "--round", "1"), "no trajectory goes by 'ffff'"),
        (("diff", "ffff", "eeee"), "no trajectory goes by 'ffff'"),
        (("trajectory", "usage", "ffff"), "no trajectory goes by 'ffff'"),
    ],
)
def test_impossible_deeds_are_said(homer: Homer, arguments: tuple[str, ...], reported: str) -> None:
    result = homer(*arguments)
    assert result.exit_code == 2
    assert reported in " ".join(result.stderr.split())


def test_a_replay_says_that_all_is_the_same(homer: Homer, asked: str) -> None:
    assert "replay matches exactly (" in homer("replay", asked[:6]).stdout
    made = data(homer("replay", asked, "--json"))
    assert (made["divergence"], made["trajectory"]) == (None, asked)
    assert made["searches"] > 0


@pytest.mark.usefixtures("tampered")
def test_a_replay_that_parts_has_its_own_exit_code(homer: Homer, store: Store, asked: str) -> None:
    with psycopg.connect(store.psycopg_url) as connection:
        connection.execute(
            """UPDATE trajectory_events SET payload = jsonb_set(payload, '{verdict}', '"replan"')
            WHERE kind = 'progress'"""
        )
    shown = homer("replay", asked)
    assert shown.exit_code == 6
    lines = shown.stdout.splitlines()
    assert "is the first that differs" in lines[0]
    assert '"verdict":"replan"' in lines[1]
    assert '"verdict":"go"' in lines[2]
    parted = homer("replay", asked, "--json")
    assert parted.exit_code == 6
    reported = json.loads(parted.stdout)
    assert reported["divergence"]["at"] == reported["events"]
    assert reported["divergence"]["recorded"]["verdict"] == "replan"


def test_a_round_is_shown_edited_and_forked(homer: Homer, asked: str, tmp_path: Path) -> None:
    assert homer("trajectory", "round", asked, "1").stdout.startswith("plan t1: ")
    was = data(homer("trajectory", "round", asked, "1", "--json"))
    assert list(was) == ["plan", "action", "evidence", "profile"]
    edit = tmp_path / "round.json"
    edit.write_text(json.dumps(was | {"evidence": was["evidence"][:1]}))
    made = data(homer("fork", asked, "--round", "1", "--edit", str(edit), "--json"))
    assert made["id"] != asked
    reported = homer("trajectory", made["id"]).stdout
    assert f"forked from {asked} at round 1: searches event" in reported
    assert f"finds [{was['evidence'][0]['ref']}]" in reported
    parted = data(homer("diff", asked, made["id"], "--json"))
    assert parted["evidence"]["round"] == 1
    assert parted["same_question"] is True
    assert homer("replay", made["id"]).exit_code == 0


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("no JSON", "is no edit"),
        ('{"rounds": 3}', "rounds"),
        ('{"plan": [{"id": "x", "text": "what"}]}', "plan.0.id"),
        ('{"evidence": [{"ref": "m1"}]}', "evidence.0"),
    ],
)
def test_an_edit_that_is_none_is_refused(
    homer: Homer, asked: str, tmp_path: Path, text: str, reported: str
) -> None:
    edit = tmp_path / "round.json"
    edit.write_text(text)
    result = homer("fork", asked, "--round", "1", "--edit", str(edit))
    assert result.exit_code == 2
    assert reported in result.stderr
    assert len(data(homer("trajectory", "--json"))) == 1


def test_usage_of_calls_by_purpose_and_round(homer: Homer, monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer(obedient) as server:
        monkeypatch.setattr(
            "flows.workspace.Toolbox", lambda _profile, _weights: LlmToolbox(server)
        )
        made = data(homer(*QUESTION))
    used = data(homer("trajectory", "usage", made["id"], "--json"))
    calls = len(server.requests)
    assert used["total"]["calls"] == calls
    assert (used["total"]["tokens_in"], used["total"]["tokens_out"]) == (100 * calls, 20 * calls)
    assert used["rounds"] == made["rounds"]
    assert used["tokens_in_a_round"] == 100 * calls / made["rounds"]
    assert sum(spent["calls"] for spent in used["by_round"].values()) == calls
    assert next(iter(used["by_purpose"])) == "plan"
    shown = homer("trajectory", "usage", made["id"]).stdout
    assert f"{used['tokens_in_a_round']:.0f} input tokens a round" in shown
    assert homer("replay", made["id"]).exit_code == 0
