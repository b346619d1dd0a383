"""Questions over HTTP: answers, events as they come, places, and clients that go away."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient
from sqlalchemy import update

from agent.reasoners.port import DecisionContext
from api.access import AccessRules, QuestionSlots
from api.door import ApiState
from api.server import make_app
from domain.errors import ModelError
from domain.ledger import SubtaskDraft
from flows.build import build_each
from nodes.finish import SO_FAR
from store.database import Store
from store.queries.rights import audit_entries
from store.tables.schema import VideoRow
from strategies.registry import all_strategies
from tests.support.api import CLIENT, HERE, WordState, client_of, events_in, problem
from tests.support.asking import PARTY, latest, remember_party
from tests.support.caption_evaluations import workspace_of
from tests.support.machine import (
    FINDS,
    VIDEO,
    ScriptedContexts,
    ScriptedMemory,
    ScriptedReasoner,
    varied,
)
from tests.support.machine import watched as watch_garden
from tests.support.obedient_model import LlmToolbox, obedient
from tests.support.openai_server import OpenAIServer
from tests.support.remembered import recording

GATE = {"question": "Who opens the gate?", "video": [PARTY]}
GARDEN = {"question": "What does Ann open?", "video": [VIDEO]}
EVENTS = {"Accept": "text/event-stream"}
WAIT_S = 60


def by_script(store: Store, places: int = 2, **scripts: Any) -> ApiState:
    plan = (SubtaskDraft(text="one"), SubtaskDraft(text="two"))
    reasoner = ScriptedReasoner(plan=[plan], **scripts)
    contexts = ScriptedContexts(reasoner, ScriptedMemory(list(FINDS)))
    return WordState(store, "local", contexts=contexts, questions=QuestionSlots(places))


async def until(true: Any) -> None:
    for _ in range(WAIT_S * 100):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come to be")


def test_an_answer_has_its_moments_images_and_a_line_in_the_audit_log(store: Store) -> None:
    remember_party(store)
    recording(store, PARTY, [4.0])
    with client_of(WordState(store, "local")) as client:
        output = client.post("/questions", json=GATE).json()
        assert (output["state"], output["not_in_memory"]) == ("done", False)
        assert "Ann opens the wooden gate" in output["answer"]
        (first, *_) = output["citations"]
        assert (first["video"], first["start_s"], first["clip"]) == (PARTY, 3.0, 0)
        assert first["image"].startswith(f"/media/keyframes/{PARTY}/")
        again = client.get(f"/questions/{output['id'][:8]}").json()
        assert (again["result"], again["state"], again["at_work"]) == (output, "done", False)
        assert [one["number"] for one in again["rounds"]] == list(range(1, output["rounds"] + 1))
        assert [one["id"] for one in client.get("/questions").json()["items"]] == [output["id"]]
        assert client.get("/questions", params={"query": "piano"}).json()["total"] == 0
        steps = client.get(f"/questions/{output['id']}/events", params={"limit": 2}).json()
        assert (steps["items"][0]["kind"], steps["next"]) == ("question", 2)
    with store.begin() as session:
        assert [(one.who, one.deed.value, one.subject) for one in audit_entries(session)] == [
            ("api (127.0.0.1)", "asked", output["id"])
        ]


def test_as_of_a_moment_an_answer_knows_nothing_later(store: Store) -> None:
    remember_party(store)
    ask = {"question": "Who plays a slow song on the piano?", "video": [PARTY]}
    with client_of(WordState(store, "local")) as client:
        for at in (65, "1:05"):
            early = client.post("/questions", json={**ask, "as_of": at}).json()
            assert "piano" not in json.dumps([early["citations"], early["retrieved"]])
            assert all(one["end_s"] <= 65 for one in early["retrieved"])
            assert client.get(f"/questions/{early['id']}").json()["as_of_s"] == 65.0
        later = client.post("/questions", json=ask).json()
    assert "slow song" in later["answer"]


def test_events_come_in_the_order_of_the_search_and_the_answer_last(store: Store) -> None:
    watch_garden(store)
    with client_of(by_script(store)) as client:
        answer = client.post("/questions", json=GARDEN, headers=EVENTS)
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        output = events_in(answer.text)
        kinds = [kind for kind, _ in output]
        name = output[0][1]["id"]
        assert kinds[0] == "question"
        assert kinds.index("plan") < kinds.index("round") < kinds.index("retrieve")
        assert kinds[-2:] == ["end", "answer"]
        rounds = [data["round"] for kind, data in output if kind == "round"]
        assert rounds == sorted(rounds)
        assert len(rounds) > 2
        kept = client.get(f"/questions/{name}/events", params={"limit": 100}).json()["items"]
        for (_, sent), recorded in zip(output[1:-1], kept[1:], strict=True):
            assert sent.items() <= recorded.items()
        assert client.get(f"/questions/{name}").json()["result"] == output[-1][1]
    assert output[-1][1]["citations"][0]["ref"] == "m1"


def test_words_come_while_a_model_writes(store: Store) -> None:
    remember_party(store)
    with OpenAIServer(obedient) as server:
        workspace = WordState(store, "local", models=LlmToolbox(server, images=False))
        with client_of(workspace) as client:
            output = events_in(client.post("/questions", json=GATE, headers=EVENTS).text)
    words = [data for kind, data in output if kind == "words"]
    assert {one["purpose"] for one in words} >= {"plan", "act"}
    assert any("gate" in one["text"] for one in words)
    assert output[-1][0] == "answer"


def test_without_videos_a_question_is_about_all_of_them(store: Store) -> None:
    remember_party(store)
    watch_garden(store)
    with client_of(WordState(store, "local")) as client:
        said = client.post("/questions", json={**GATE, "video": []}).json()
        (row,) = client.get("/questions").json()["items"]
    assert (said["citations"][0]["video"], len(row["videos"])) == (PARTY, 2)


@pytest.mark.parametrize(
    ("ask", "status", "code"),
    [
        ({**GATE, "video": ["nothing"]}, 404, "not-found"),
        ({**GATE, "profile": "/etc/hosts"}, 404, "not-found"),
        ({**GATE, "question": "  "}, 422, "input"),
        ({**GATE, "options": ["a", " "]}, 422, "input"),
        ({**GATE, "as_of": "soon"}, 422, "request"),
        ({**GATE, "as_of": 1e300}, 422, "request"),
        ({**GATE, "as_of": -5}, 422, "request"),
        ({**GATE, "when": 5}, 422, "request"),
        ({"video": [PARTY]}, 422, "request"),
        ({**GATE, "options": ["x"] * 27}, 422, "request"),
    ],
)
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_what_cannot_be_asked_is_refused_before_anything_begins(
    two_videos: ApiState, ask: dict[str, Any], status: int, code: str, accept: str
) -> None:
    with client_of(two_videos) as client:
        problem(client.post("/questions", json=ask, headers={"Accept": accept}), status, code)
        assert client.get("/questions").json()["total"] == 0
    assert two_videos.questions.in_use == 0


@pytest.fixture(scope="module")
def two_videos(tmp_path_factory: pytest.TempPathFactory, make_database: Any) -> Any:
    from store.database import open_store
    from store.home import Home

    home = Home(tmp_path_factory.mktemp("asked") / "home").make()
    with open_store(home, make_database()) as store:
        remember_party(store)
        watch_garden(store)
        yield WordState(store, "local")


def test_a_model_that_fails_is_a_problem_with_or_without_events(store: Store) -> None:
    watch_garden(store)
    with client_of(by_script(store, act=[ModelError("the connection was refused")])) as client:
        output = problem(client.post("/questions", json=GARDEN), 502, "model")
        assert "refused" in output["detail"]
        last = events_in(client.post("/questions", json=GARDEN, headers=EVENTS).text)[-1]
        assert (last[0], last[1]["code"]) == ("problem", "model")
        asked = client.get(f"/questions/{latest(store).id}").json()
        assert (asked["state"], asked["result"]) == ("failed", None)
        assert "refused" in asked["errors"][-1]


class Held:
    """A reasoner's second round waits until it is let go."""

    def __init__(self) -> None:
        self.there, self.go_on = threading.Event(), threading.Event()

    def __call__(self, turn: DecisionContext) -> Any:
        if turn.round == 2:
            self.there.set()
            assert self.go_on.wait(WAIT_S)
        return varied(turn)


def test_where_all_places_are_taken_one_is_asked_to_come_again(store: Store) -> None:
    watch_garden(store)
    held = Held()

    async def crowd(workspace: ApiState) -> None:
        transport = ASGITransport(make_app(workspace, AccessRules()), client=CLIENT)
        async with AsyncClient(transport=transport, base_url=HERE) as client:
            first = asyncio.ensure_future(client.post("/questions", json=GARDEN))
            await until(held.there.is_set)
            refused = await client.post("/questions", json=GARDEN)
            assert "Retry-After" in problem(refused, 429, "crowded")["help"]
            assert int(refused.headers["retry-after"]) > 0
            assert (await client.get("/videos")).status_code == 200
            held.go_on.set()
            assert (await first).status_code == 200
            await until(lambda: workspace.questions.in_use == 0)
            assert (await client.post("/questions", json=GARDEN)).status_code == 200

    workspace = by_script(store, places=1, act=[held])
    asyncio.run(crowd(workspace))
    workspace.close()


class Listener:
    """A client by hand, who can hang up."""

    def __init__(self, accept: str) -> None:
        self.gone = asyncio.Event()
        self.sent: list[Any] = []
        body = json.dumps(GARDEN).encode()
        self._first: Any = {"type": "http.request", "body": body, "more_body": False}
        headers = {"host": "127.0.0.1", "accept": accept, "content-type": "application/json"}
        self.scope: Any = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/questions",
            "raw_path": b"/questions",
            "query_string": b"",
            "root_path": "",
            "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
            "client": CLIENT,
            "server": ("127.0.0.1", 80),
        }

    async def receive(self) -> Any:
        first, self._first = self._first, None
        if first is not None:
            return first
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    @property
    def text(self) -> str:
        return b"".join(one.get("body", b"") for one in self.sent).decode()


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_client_that_goes_away_stops_its_question_at_next_word(store: Store, accept: str) -> None:
    watch_garden(store)
    held = Held()
    workspace = by_script(store, act=[held])

    async def leave() -> None:
        client = Listener(accept)
        asking = asyncio.ensure_future(
            make_app(workspace, AccessRules())(client.scope, client.receive, client.send)
        )
        await until(held.there.is_set)
        client.gone.set()
        await asyncio.wait_for(asking, WAIT_S)
        # Its place is held until the search itself is over.
        assert workspace.questions.in_use == 1
        held.go_on.set()
        await until(lambda: workspace.questions.in_use == 0)
        if "stream" in accept:
            assert events_in(client.text)[0][0] == "question"

    asyncio.run(leave())
    row = latest(store)
    assert row.state == "stopped"
    assert row.answer is not None
    assert SO_FAR in row.answer.note
    with client_of(workspace) as client:
        output = client.get(f"/questions/{row.id}").json()
    assert (output["state"], output["at_work"], output["result"]["state"]) == (
        "stopped",
        False,
        "stopped",
    )


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_server_that_ends_tells_its_clients_and_loses_nothing(store: Store, accept: str) -> None:
    watch_garden(store)
    held = Held()
    workspace = by_script(store, act=[held])

    async def end() -> Listener:
        client = Listener(accept)
        asking = asyncio.ensure_future(
            make_app(workspace, AccessRules())(client.scope, client.receive, client.send)
        )
        await until(held.there.is_set)
        workspace.questions.closing.set()
        await asyncio.wait_for(asking, WAIT_S)
        held.go_on.set()
        assert await workspace.questions.wait_until_idle(WAIT_S)
        return client

    client = asyncio.run(end())
    row = latest(store)
    assert row.state == "stopped"
    assert row.answer is not None
    if "stream" in accept:
        last = events_in(client.text)[-1]
        assert (last[0], last[1]["code"]) == ("problem", "stopping")
    else:
        assert client.sent[0]["status"] == 503
    assert f"/questions/{row.id}" in client.text
    assert SO_FAR not in workspace.runner().resume(row.id).answer.note
    workspace.close()


def test_silence_is_told_to_go_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from api import sse

    watch_garden(store)
    monkeypatch.setattr(sse.until_disconnect, "__defaults__", (0.01,))

    def slow(turn: DecisionContext) -> Any:
        time.sleep(0.05)
        return varied(turn)

    with client_of(by_script(store, act=[slow])) as client:
        output = client.post("/questions", json=GARDEN, headers=EVENTS).text
    assert "\n: still searching\n" in output
    assert events_in(output)[-1][0] == "answer"


def test_a_strategy_is_chosen_by_its_name(store: Store) -> None:
    remember_party(store)
    with store.begin() as session:
        session.execute(update(VideoRow).values(state="done"))
    build_each(workspace_of(store), PARTY, all_strategies(), lambda _: lambda *_: None)
    with client_of(WordState(store, "local")) as client:
        names = [one["name"] for one in client.get("/strategies").json()]
        for name in names:
            answer = client.post("/questions", json={**GATE, "strategy": name}).json()
            first = client.get(f"/questions/{answer['id']}/events").json()["items"][0]
            assert first["machine"] == name
            assert answer["citations"]
        unknown = client.post("/questions", json={**GATE, "strategy": "oracle"})
        assert unknown.status_code == 404
        assert ", ".join(names) in unknown.text
