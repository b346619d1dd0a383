"""The library for MCP clients, with the SDK's own client: in process, over HTTP, over stdio."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import INVALID_PARAMS
from sqlalchemy import update
from typer.testing import CliRunner

from agent.reasoners.port import DecisionContext
from api.access import BODY_S, MAX_BODY_BYTES, AccessRules, parse_keys
from api.door import ApiState
from api.mcp_server import PATH, make_mcp_app, make_server
from api.server import server_config
from cli import serve as command
from cli.main import app
from models.keys_and_packages import Extra
from store.database import Store
from store.home import Home
from store.queries.rights import audit_entries
from store.tables.schema import KeyframeRow, VideoRow
from strategies.registry import all_strategies
from tests.integration.test_api_questions import GARDEN, GATE, by_script, until
from tests.support.api import WordState
from tests.support.asking import PARTY, latest, remember_party
from tests.support.machine import varied
from tests.support.machine import watched as watch_garden
from tests.support.markup_video import BAIT, MARKS
from tests.support.picture_cards import Card, jpeg
from tests.support.remembered import Said, recording, watch
from tests.support.servers import small_library
from tests.support.slow_clients import served

KEY = "0123456789abcdef0123"
RULES = AccessRules(parse_keys(f"ann:{KEY}"), ("127.0.0.1",))
ERAS = ("legacy", "auto")
"""Clients of the protocol as it was until 2025, with sessions, and as it is since."""

Talk = Callable[[Client], Awaitable[Any]]


@pytest.fixture
def party(store: Store) -> ApiState:
    remember_party(store)
    recording(store, PARTY, [4.0])
    return WordState(store, "local")


def talk(state: ApiState, what: Talk, *strategies: str) -> Any:
    """What a client gets that is in the same process.

    Raises:
        MCPError: an error of the protocol.
    """

    async def run() -> Any:
        async with Client(make_server(state, strategies)) as client:
            try:
                return await what(client)
            except MCPError as error:  # Raised from here it would come as a group.
                return error

    result = asyncio.run(run())
    if isinstance(result, MCPError):
        raise result
    return result


def called(state: ApiState, name: str, *strategies: str, **arguments: Any) -> Any:
    return talk(state, lambda client: client.call_tool(name, arguments), *strategies)


def refused(state: ApiState, name: str, **arguments: Any) -> str:
    """The sentence of a call that cannot be answered."""
    result = called(state, name, **arguments)
    assert result.is_error
    assert result.structured_content is None
    return str(result.content[0].text)


@contextmanager
def on_http(state: ApiState, rules: AccessRules = RULES) -> Iterator[str]:
    with served(server_config(make_mcp_app(state, rules, BODY_S))) as address:
        yield address + PATH
    state.close()


@asynccontextmanager
async def client_at(address: str, mode: str = "auto", key: str = KEY) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as http:
        transport = streamable_http_client(address, http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


# Tools


def test_the_tools_are_described_with_all_their_arguments(party: ApiState) -> None:
    tools = talk(party, lambda client: client.list_tools()).tools
    names = [tool.name for tool in tools]
    reading = ["library_people", "outline", "people", "search", "show_moment", "videos"]
    assert sorted(names) == ["ask", *reading]
    for tool in tools:
        assert len(tool.description) > 30
        assert tool.input_schema["additionalProperties"] is False
        for name, argument in tool.input_schema["properties"].items():
            assert argument.get("description"), (tool.name, name)


def test_what_a_tool_finds_is_what_the_api_answers(party: ApiState) -> None:
    found = called(party, "search", query="the wooden gate", video=[PARTY])
    first = found.structured_content["evidence"][0]
    assert first["text"] == "Ann opens the wooden gate of the garden"
    assert json.loads(found.content[0].text) == found.structured_content
    assert [one["id"] for one in called(party, "videos").structured_content["items"]] == [PARTY]
    everybody = called(party, "library_people").structured_content["items"]
    assert [one["label"] for one in everybody] == ["Ann", "Bob"]
    assert everybody[0]["characters"][0]["video"] == PARTY


def test_words_of_a_video_ask_nobody_for_anything_where_they_are_shown(store: Store) -> None:
    """Clients show what a tool returns, and models repeat it, as Markdown or in a terminal."""
    watch(store, "b" * 16, [(Said(f"The zebra {BAIT} runs \x1b[31m\u202e away", 3),)])
    with store.begin() as session:
        session.execute(update(VideoRow).values(title=BAIT))
    state = WordState(store, "local")
    found = [
        called(state, "ask", question=f"Where is the zebra {BAIT}?"),
        called(state, "search", query="zebra"),
        called(state, "show_moment", video="b" * 16, at=4),
        called(state, "videos"),
    ]
    texts = [*(one.content[0].text for one in found)]
    texts += [refused(state, "show_moment", video=f"no {BAIT}", at=4)]
    texts += talk(state, lambda client: texts_of_resources(client))
    for text in texts:
        assert "evil.example" in text
        assert [mark for mark in (*MARKS, "\x1b", "\\u001b", "\u202e") if mark in text] == []


async def texts_of_resources(client: Client) -> list[str]:
    """The names of all resources, and what the first of them says."""
    listed = (await client.list_resources()).resources
    (read,) = (await client.read_resource(listed[0].uri)).contents
    return [*(one.name for one in listed), read.text]  # type: ignore[union-attr]


def test_a_moment_is_shown_with_its_image(party: ApiState) -> None:
    blob = party.store.blobs.put(jpeg(Card("red", "CUP", "circle")))
    with party.store.begin() as session:
        session.execute(update(KeyframeRow).values(blob=blob))
    shown = called(party, "show_moment", video=PARTY, at=4)
    assert any(
        "wooden gate" in one["text"] for one in shown.structured_content["memory"][0]["nodes"]
    )
    _, image = shown.content
    assert image.mime_type == "image/jpeg"
    assert b64decode(image.data).startswith(b"\xff\xd8")
    assert len(called(party, "show_moment", video=PARTY, at="2:30").content) == 1
    wrong = refused(party, "show_moment", video=PARTY, at=4, image="k999")
    assert wrong == f"video {PARTY} has no image k999"


def test_a_moment_whose_image_is_lost_is_shown_without_it(party: ApiState) -> None:
    _, lost = called(party, "show_moment", video=PARTY, at=4).content
    assert "lost or damaged" in lost.text


def test_an_answer_comes_with_its_moments_and_its_progress(party: ApiState) -> None:
    heard: list[tuple[float, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    result = talk(
        party, lambda client: client.call_tool("ask", GATE, progress_callback=on_progress)
    )
    answer = result.structured_content
    assert "Ann opens the wooden gate" in answer["answer"]
    assert answer["citations"][0]["video"] == PARTY
    assert [done for done, _ in heard] == sorted({done for done, _ in heard})
    assert any(message and "gate" in message for _, message in heard)


def test_the_tools_of_strategies_are_offered_by_their_own_names(party: ApiState) -> None:
    async def names(client: Client) -> set[str]:
        return {tool.name for tool in (await client.list_tools()).tools}

    for strategy in (one.name for one in all_strategies()):
        offered = talk(party, names, strategy) - talk(party, names)
        assert offered
        assert all(name.startswith(f"{strategy}_") for name in offered)


def test_a_tool_of_a_strategy_takes_what_models_are_given_and_the_videos(party: ApiState) -> None:
    found = called(party, "plain-rag_nearest", "plain-rag", query="a slow song", video=[PARTY])
    assert found.structured_content["evidence"][0]["text"] == "Bob plays a slow song on the piano"
    wrong = called(party, "plain-rag_nearest", "plain-rag", query="a slow song", pages=3)
    assert wrong.is_error
    assert "pages" in wrong.content[0].text


WRONG: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("search", {"query": "rain", "nearby": 1}, "nearby: Extra inputs are not permitted"),
    ("ask", {**GATE, "model": "x"}, "model: Extra inputs are not permitted"),
    ("videos", {"limit": 1000}, "limit: Input should be less than or equal to 100"),
    ("search", {"query": " "}, "the query is empty"),
    ("search", {"query": "rain", "video": ["nowhere"]}, "no video"),
    ("people", {"video": "../party"}, "no video"),
    ("outline", {"video": PARTY}, "has no outline"),
    ("ask", {"question": "Who?", "strategy": "oracle"}, "oracle"),
    ("show_moment", {"video": PARTY, "at": "soon"}, "at: "),
)


def test_what_a_tool_cannot_do_is_said_in_a_sentence(party: ApiState) -> None:
    for name, arguments, sentence in WRONG:
        assert sentence in refused(party, name, **arguments)


def test_a_fault_reveals_nothing(party: ApiState, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("library.videos.page_of_videos", broken)
    assert "internal error" in refused(party, "videos")


def test_a_tool_that_is_none_is_an_error_of_the_protocol(party: ApiState) -> None:
    with pytest.raises(MCPError, match="no tool is called 'delete'"):
        called(party, "delete")


# Resources


def test_videos_and_questions_are_resources(party: ApiState) -> None:
    called(party, "ask", **GATE)

    async def read(client: Client) -> tuple[Any, ...]:
        listed = (await client.list_resources()).resources
        texts = [(await client.read_resource(one.uri)).contents[0] for one in listed]
        clips = await client.read_resource(f"{listed[0].uri}/clips?offset=3")
        return listed, texts, clips.contents[0]

    listed, texts, clips = talk(party, read)
    assert [one.name for one in listed][1] == GATE["question"]
    video, question = (json.loads(one.text) for one in texts)
    assert (video["id"], video["clips"]) == (PARTY, 6)
    assert "wooden gate" in question["answer"]
    assert json.loads(clips.text)["items"][0]["index"] == 3


def test_resources_are_listed_by_page(party: ApiState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.mcp_server.MAX_LIMIT", 2)
    for _ in range(2):
        called(party, "ask", **GATE)

    async def pages(client: Client) -> list[int]:
        first = await client.list_resources()
        second = await client.list_resources(cursor=first.next_cursor)
        assert second.next_cursor is None
        return [len({one.uri for one in page.resources}) for page in (first, second)]

    assert talk(party, pages) == [2, 1]
    with pytest.raises(MCPError, match="the cursor is not a number"):
        talk(party, lambda client: client.list_resources(cursor="-1"))


NO_RESOURCES = (
    *("homer://videos/nowhere", "homer://videos/", "homer://jobs/1", "file:///etc/passwd"),
    *("homer://[", f"homer://videos/{PARTY}/secrets", f"homer://videos/{PARTY}/clips?a=1&b=2"),
    f"homer://videos/{PARTY}/clips?offset=-1",
)


def test_what_is_no_resource_is_refused(party: ApiState) -> None:
    async def read(client: Client) -> list[int]:
        return [await code_of(client.read_resource(uri)) for uri in NO_RESOURCES]

    assert set(talk(party, read)) == {INVALID_PARAMS}


async def code_of(request: Awaitable[Any]) -> int:
    with pytest.raises(MCPError) as refused:
        await request
    return refused.value.code


# HTTP


@pytest.mark.parametrize("mode", ERAS)
def test_a_client_with_a_key_asks_over_http(party: ApiState, mode: str) -> None:
    heard: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    async def run(address: str) -> Any:
        async with client_at(address, mode) as client:
            return await client.call_tool("ask", GATE, progress_callback=on_progress)

    with on_http(party) as address:
        answer = asyncio.run(run(address)).structured_content
    assert "Ann opens the wooden gate" in answer["answer"]
    assert any(message and "gate" in message for message in heard)
    with party.store.begin() as session:
        entries = [(entry.who, entry.subject) for entry in audit_entries(session)]
    assert ("api (ann)", answer["id"]) in entries


def test_strangers_get_nothing(party: ApiState) -> None:
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accepts = {"Accept": "application/json, text/event-stream"}
    with on_http(party) as address, httpx2.Client(headers=accepts) as http:
        for headers in ({}, {"Authorization": "Bearer " + "x" * 20}):
            reply = http.post(address, json=listing, headers=headers)
            assert (reply.status_code, reply.json()["code"]) == (401, "key")
        known = {"Authorization": f"Bearer {KEY}"}
        rebound = http.post(address, json=listing, headers={**known, "Host": "evil.example"})
        assert rebound.status_code == 421
        foreign = {**known, "Origin": "https://evil.example"}
        assert http.post(address, json=listing, headers=foreign).status_code == 403
        large = http.post(address, content=b" " * (MAX_BODY_BYTES + 1), headers=known)
        assert large.status_code == 413
        assert http.get(address, headers=known).status_code == 405
        assert http.get(address.removesuffix(PATH) + "/health").status_code == 200
        assert http.get(address.removesuffix(PATH) + "/videos", headers=known).status_code == 404


def test_key_takes_no_sessions_of_others(party: ApiState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.mcp_server.MAX_SESSIONS", 2)
    about = {"protocolVersion": "2025-03-26", "capabilities": {}}
    about["clientInfo"] = {"name": "x", "version": "1"}
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    accepts = {"Accept": "application/json, text/event-stream"}
    ann, bob = ({"Authorization": f"Bearer {key}"} for key in (KEY, KEY[::-1]))
    rules = AccessRules(parse_keys(f"ann:{KEY},bob:{KEY[::-1]}"), ("127.0.0.1",))
    with on_http(party, rules) as address, httpx2.Client(headers=accepts) as http:
        replies = [http.post(address, json=opening, headers=ann) for _ in range(3)]
        assert [reply.status_code for reply in replies] == [200, 200, 503]
        assert http.post(address, json=opening, headers=bob).status_code == 200
        session = {"Mcp-Session-Id": replies[0].headers["Mcp-Session-Id"]}
        ended = [http.delete(address, headers={**who, **session}) for who in (bob, ann)]
        assert [reply.status_code for reply in ended] == [404, 200]


@pytest.mark.parametrize("mode", ERAS)
def test_a_question_that_is_cancelled_stops_and_makes_place(store: Store, mode: str) -> None:
    watch_garden(store)
    begun, go_on = threading.Event(), threading.Event()

    def waits(turn: DecisionContext) -> Any:
        begun.set()
        go_on.wait(20)
        return varied(turn)

    state = by_script(store, 1, act=[waits])

    async def run(address: str) -> Any:
        async with client_at(address, mode) as client:
            asked = asyncio.ensure_future(client.call_tool("ask", GARDEN))
            await until(begun.is_set)
            crowded = await client.call_tool("ask", GARDEN)
            asked.cancel()
            await asyncio.sleep(0.2)
            go_on.set()
            await until(lambda: not state.questions.in_use)
            return crowded

    with on_http(state) as address:
        crowded = asyncio.run(run(address))
    assert crowded.is_error
    assert crowded.content[0].text == "1 of these run already, which is the limit"
    assert latest(store).state == "stopped"


# The command


def test_a_client_starts_the_command_and_speaks_to_it(database: str, tmp_path: Path) -> None:
    """One process for all of it: it is the only test that sees the command itself."""
    env = small_library(tmp_path, database)
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "cli", "mcp", "--strategy", "homer"], env=env
    )

    async def run() -> tuple[Any, ...]:
        async with Client(parameters) as client:
            tools = await client.list_tools()
            shown = await client.call_tool("show_moment", {"video": PARTY, "at": "0:04"})
            unknown = await client.call_tool("people", {"video": "nowhere"})
            return {tool.name for tool in tools.tools}, shown, unknown

    names, shown, unknown = asyncio.run(run())
    assert {"ask", "homer_event"} <= names
    assert shown.structured_content["video"] == PARTY
    assert unknown.is_error


def test_other_machines_need_a_key(home: Home) -> None:
    done = CliRunner().invoke(app, ["mcp", "--http", "--address", "0.0.0.0"])
    assert done.exit_code == 3
    assert "HOMER_API_KEY" in done.stderr


def test_without_the_sdk_it_says_which_extra(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "MCP", Extra(("no_such_module",), ("mcp",), "mcp"))
    done = CliRunner().invoke(app, ["mcp"])
    assert done.exit_code == 3
    assert 'extra "mcp"' in done.stderr
