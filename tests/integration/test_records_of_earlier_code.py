"""A library, an export and trajectories of earlier code: they restore, replay, resume, import.

``tests/support/records/README.md`` says what the files are and when they may be written anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from domain.asking import Answer
from domain.trajectory import Forked, ModelCalled
from evals.records import find_run
from graphs.ask import resume
from graphs.replay import replay
from store.archive import open_archive
from store.database import Store, open_store
from store.home import Home
from store.queries.trajectories import events_of, find_trajectory, list_trajectories
from tests.support.asking import WordToolbox
from tests.support.frozen import make
from tests.support.frozen.make import ABOUT, EXPORT, FOLDER, LIBRARY, RUN, TALK, WEEK, WHOLE_WEEK
from tests.support.obedient_model import LlmToolbox, obedient, purpose_of
from tests.support.openai_server import OpenAIServer
from views.library import list_library

WRITTEN: dict[str, Any] = json.loads((FOLDER / ABOUT).read_text(encoding="utf-8"))
NAMED: dict[str, str] = WRITTEN["trajectories"]
BY_MODEL = ("answered by a model", "stopped by Ctrl-C")


def run(store: Store, *arguments: object) -> Result:
    """Run a command on a library."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOMER_HOME", str(store.home.root))
        patch.setenv("HOMER_DATABASE_URL", store.url)
        return CliRunner().invoke(app, [str(one) for one in arguments])


def as_now(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer as it was written, with the defaults of fields that came later."""
    return Answer.model_validate(answer).model_dump(mode="json")


def dumped(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def opened(
    tmp_path_factory: pytest.TempPathFactory, make_database: Callable[[], str]
) -> Iterator[Callable[[], Store]]:
    """Opens empty libraries."""
    stores: list[Store] = []

    def make_one() -> Store:
        stores.append(open_store(Home(tmp_path_factory.mktemp("library")).make(), make_database()))
        return stores[-1]

    yield make_one
    for store in stores:
        store.close()


def filled(store: Store) -> Store:
    done = run(store, "restore", FOLDER / LIBRARY)
    assert done.exit_code == 0, done.stderr
    return store


@pytest.fixture(scope="module")
def restored(opened: Callable[[], Store]) -> Store:
    """The library of the back-up, which no test changes."""
    return filled(opened())


@pytest.fixture(scope="module")
def continued(opened: Callable[[], Store]) -> Store:
    """The library of the back-up, in which tests go on with what was not finished."""
    return filled(opened())


@pytest.fixture(scope="module")
def imported(opened: Callable[[], Store]) -> Store:
    """A library into which the export was imported."""
    store = opened()
    done = run(store, "import", FOLDER / EXPORT)
    assert done.exit_code == 0, done.stderr
    return store


def test_the_back_up_has_rows_of_every_table_that_a_library_fills() -> None:
    with open_archive(FOLDER / LIBRARY) as archive:
        empty = [one.table for one in archive.manifest.tables if not one.rows]
    assert empty == ["checkpoint_writes"]


@pytest.mark.parametrize("file", sorted(path.name for path in FOLDER.glob("*.dump.jsonl")))
def test_a_restored_video_is_dumped_byte_for_byte(restored: Store, file: str) -> None:
    reported = run(restored, "dump", file.removesuffix(".dump.jsonl"))
    assert reported.exit_code == 0
    assert reported.stdout == dumped(file)


def test_every_video_has_a_dump_beside_it(restored: Store) -> None:
    titles = sorted(one.title for one in list_library(restored))
    assert titles == sorted(p.name.removesuffix(".dump.jsonl") for p in FOLDER.glob("*.dump.jsonl"))


def test_every_answer_is_read_as_it_was_given(restored: Store) -> None:
    with restored.begin() as session:
        rows = list_trajectories(session)
    answers = {row.id: row.answer.model_dump(mode="json") for row in rows if row.answer}
    assert answers == {name: as_now(answer) for name, answer in WRITTEN["answers"].items()}


@pytest.mark.parametrize("what", sorted(NAMED))
def test_a_trajectory_is_replayed_byte_for_byte_and_no_model_is_called(
    restored: Store, what: str
) -> None:
    reported = run(restored, "replay", NAMED[what], "--json")
    assert reported.exit_code == 0, reported.output
    made = json.loads(reported.stdout)
    assert (made["same"], made["divergence"]) == (True, None)
    assert made["searches"] > 0
    assert (made["calls"] > 0) == (what in BY_MODEL)
    assert made["ended"] == (what != "killed")


def test_a_trajectory_is_shown_with_all_its_rounds(restored: Store) -> None:
    name = NAMED["answered by a model"]
    reported = json.loads(run(restored, "trajectory", name, "--json").stdout)
    assert reported["answer"] == as_now(WRITTEN["answers"][name])
    kinds = [event["kind"] for event in reported["events"]]
    assert (kinds[0], kinds[-1]) == ("question", "end")
    assert {"plan", "round", "prompt", "call", "act", "retrieve", "assess", "record"} <= {*kinds}


def test_a_fork_knows_what_it_was_made_from(restored: Store) -> None:
    with restored.begin() as session:
        (fork,) = (e for e in events_of(session, NAMED["forked"]) if isinstance(e, Forked))
    assert fork.parent == NAMED["answered by rules"]


def test_an_evaluation_is_read_as_it_ended(restored: Store) -> None:
    found = find_run(restored, RUN)
    assert (found.state, found.planned, found.judged) == ("done", 6, 6)


def test_a_killed_question_is_resumed_to_an_answer(continued: Store) -> None:
    name = NAMED["killed"]
    with continued.begin() as session:
        before = events_of(session, name)
    made = resume(continued, WordToolbox(), name)
    assert (made.trajectory_id, made.rounds > 1) == (name, True)
    with continued.begin() as session:
        row, after = find_trajectory(session, name), events_of(session, name)
    assert (row.state, row.answer) == ("done", made.answer)
    assert after[: len(before)] == before
    assert replay(continued, name).whole


def test_a_stopped_question_is_resumed_without_repeating_a_call(continued: Store) -> None:
    name = NAMED["stopped by Ctrl-C"]
    with continued.begin() as session:
        before = [e for e in events_of(session, name) if isinstance(e, ModelCalled)]
    with OpenAIServer(obedient) as server:
        made = resume(continued, LlmToolbox(server), name)
        asked = [purpose_of(request) for request in server.requests]
    with continued.begin() as session:
        row = find_trajectory(session, name)
        after = [e for e in events_of(session, name) if isinstance(e, ModelCalled)]
    whole = WRITTEN["answers"][NAMED["answered by a model"]]
    assert (row.state, made.answer.text) == ("done", whole["text"])
    assert "plan" not in asked
    assert len(after) == 3 + len(asked) > len(before)
    assert replay(continued, name).whole


def test_an_import_that_was_cut_off_goes_on_to_the_same_memory(continued: Store) -> None:
    assert run(continued, "dump", WEEK).stdout == dumped(f"{WEEK}.dump.jsonl")
    make.import_captions(continued, FOLDER / f"{WEEK}.jsonl")
    whole = run(continued, "dump", WEEK).stdout
    assert whole.count('"writers":["rules"]') == 1, "of the patch that was written since"
    assert whole.replace(',"writers":["rules"]', "") == dumped(WHOLE_WEEK)


def test_an_imported_export_is_the_same_video(imported: Store) -> None:
    assert run(imported, "dump", TALK).stdout == dumped(f"{TALK}.dump.jsonl")


@pytest.mark.parametrize("what", ["answered by rules", "answered by a model", "forked", "killed"])
def test_the_answers_of_an_export_are_replayed(imported: Store, what: str) -> None:
    reported = run(imported, "replay", NAMED[what])
    assert reported.exit_code == 0, reported.output
    assert "replay matches exactly (" in reported.stdout
