from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from domain.calls import CallRecord
from domain.errors import HomerError, ModelError, ReplayMiss, SetupError
from domain.settings import IMAGE_TOKENS
from models import retries
from models.chat import StructuredChat
from models.messages import system, user
from models.profile import Profile
from models.specs import ChatSpec, Price, Structure
from models.toolbox import Toolbox
from store.files import Slots
from telemetry import tracing
from tests.support.openai_server import EVERYTHING, Answer, OpenAIServer
from tests.support.telemetry_exporters import Exported

JPEG = b"\xff\xd8\xff\xe0 picture"
TURNS = [system("You know cities."), user("Where does it happen?")]
KEY = "sk-very-secret-0123456789"


class City(BaseModel):
    """Where something happens."""

    name: str = Field(description="the city's name")
    people: int = 0
    sights: list[str] = []


class Town(City):
    """Another form for the same thing."""


def chat_of(
    server: OpenAIServer, sink: Any = None, replay: Any = None, **spec: Any
) -> StructuredChat:
    chosen = ChatSpec(model="openai:atlas", base_url=server.base_url, **spec)
    profile = Profile(name="test", chat={"default": chosen})
    return Toolbox(profile, Path("absent")).chat("reasoner", sink, replay)


def way_of(request: dict[str, Any]) -> str:
    if "response_format" in request:
        return "json_schema"
    return "tools" if "tools" in request else "text"


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_WAIT_S", 0.01)


@pytest.mark.parametrize(
    ("supports", "way"),
    [
        (EVERYTHING, "json_schema"),
        ({"tools", "usage"}, "tools"),
        ({"usage"}, "text"),
        (set(), "text"),
    ],
)
def test_every_kind_of_server_gives_the_same_value(supports: set[str], way: str) -> None:
    with OpenAIServer([{"name": "Paris", "people": 3}] * 2, supports) as server:
        chat = chat_of(server)
        assert chat.ask(TURNS, City, purpose="act") == City(name="Paris", people=3)
        assert way_of(server.requests[-1]) == way
        refused = len(server.requests)
        chat.ask(TURNS, City, purpose="act")
        assert len(server.requests) == refused + 1, "what the server refuses is asked only once"


@pytest.mark.parametrize("way", ["json_schema", "tools", "text"])
def test_the_profile_says_where_to_start_and_the_model_is_told_the_form(way: str) -> None:
    with OpenAIServer([{"name": "Paris"}]) as server:
        chat_of(server, structure=way).ask(TURNS, City, purpose="act")
        assert [way_of(request) for request in server.requests] == [way]
        assert "the city's name" in json.dumps(server.requests[0])
        assert "You know cities." in server.texts()[0]


@pytest.mark.parametrize("way", ["tools", "text"])
@pytest.mark.parametrize(
    "broken",
    [
        "{'name': 'Paris', 'sights': ['Louvre',],}",
        'Of course!\n```json\n{"name": "Paris", "sights": ["Louvre"]}\n```',
        '{"name": "Paris", "sights": ["Louvre"',
    ],
)
def test_a_garbled_answer_is_mended(way: str, broken: str) -> None:
    with OpenAIServer([broken]) as server:
        reply = chat_of(server, structure=way).ask(TURNS, City, purpose="act")
        assert reply == City(name="Paris", sights=["Louvre"])


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("I would rather not say.", "no JSON object.*rather not"),
        ({"people": 3}, "does not fit City: name: Field required"),
        ({"name": "Paris", "people": "many"}, "people: Input should be a valid integer"),
    ],
)
def test_an_answer_that_does_not_fit_says_why_and_is_recorded(said: Any, complaint: str) -> None:
    calls: list[CallRecord] = []
    with OpenAIServer([said]) as server, pytest.raises(ModelError, match=complaint):
        chat_of(server, calls.append).ask(TURNS, City, purpose="plan")
    (call,) = calls
    assert call.error is not None
    assert call.reply is not None
    assert (call.tokens_in, call.tokens_out) == (100, 20)


def test_the_record_of_a_call() -> None:
    calls: list[CallRecord] = []
    price = Price(input=1.0, output=10.0)
    with OpenAIServer([{"name": "Paris"}]) as server:
        chat = chat_of(server, calls.append, price=price)
        chat.ask(TURNS, City, purpose="act", temperature=0.8, images=[JPEG])
    (call,) = calls
    assert (call.purpose, call.profile, call.model) == ("act", "test", "openai:atlas")
    assert call.messages[0] == {"role": "system", "content": "You know cities."}
    assert call.reply == {"text": '{"name": "Paris"}'}
    assert call.error is None
    assert (call.tokens_in, call.tokens_out) == (100, 20)
    assert call.cost_usd == pytest.approx(300e-6)
    assert call.ms >= 0
    json.dumps([call.messages, call.reply])


def test_temperature_limit_and_images_reach_the_server() -> None:
    with OpenAIServer([{"name": "Paris"}] * 2) as server:
        chat = chat_of(server, max_tokens=77, temperature=0.1)
        chat.ask(TURNS, City, purpose="act", temperature=0.8, images=[JPEG, JPEG])
        chat.ask(TURNS, City, purpose="act")
        hot, mild = server.requests
    assert (hot["temperature"], mild["temperature"]) == (0.8, 0.1)
    assert hot["max_tokens"] == 77
    kinds = [part["type"] for part in hot["messages"][-1]["content"]]
    assert kinds == ["text", "image_url", "image_url"]


def test_options_reach_the_server_and_a_temperature_that_it_refuses_does_not_again() -> None:
    refused = "Unsupported value: 'temperature' does not support 0.8 with this model."

    def picky(request: dict[str, Any]) -> Any:
        hot = "temperature" in request
        return Answer({"error": {"message": refused}}, status=400) if hot else {"name": "Paris"}

    with OpenAIServer(picky) as server:
        chat = chat_of(server, options={"reasoning_effort": "low"}, thinking_tokens=500)
        for _ in range(2):
            chat.ask(TURNS, City, purpose="act", temperature=0.8)
        sent = server.requests
    assert ["temperature" in request for request in sent] == [True, False, False]
    assert {request["reasoning_effort"] for request in sent} == {"low"}
    assert {request["max_tokens"] for request in sent} == {4_096 + 500}


@pytest.mark.parametrize("structure", ["json_schema", "tools", "text"])
def test_images_count_where_the_server_reports_no_tokens(structure: Structure) -> None:
    with OpenAIServer([{"name": "Paris"}] * 2, EVERYTHING - {"usage"}) as server:
        calls: list[CallRecord] = []
        chat = chat_of(server, calls.append, structure=structure)
        chat.ask(TURNS, City, purpose="act")
        chat.ask(TURNS, City, purpose="act", images=[JPEG, JPEG])
    without, shown = calls
    assert shown.tokens_in - without.tokens_in == pytest.approx(2 * IMAGE_TOKENS, rel=0.05)


def test_a_model_that_cannot_see_is_not_shown_images() -> None:
    with OpenAIServer() as server:
        chat = chat_of(server, images=False)
        assert not chat.sees
        with pytest.raises(ModelError, match="cannot look at images"):
            chat.ask(TURNS, City, purpose="act", images=[JPEG])
        assert server.requests == []


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(status: int, no_pauses: None) -> None:
    busy = Answer({"error": {"message": "busy"}}, status)
    calls: list[CallRecord] = []
    with OpenAIServer([busy, busy, {"name": "Paris"}]) as server:
        reply = chat_of(server, calls.append, retries=2).ask(TURNS, City, purpose="act")
        assert reply.name == "Paris"
        assert len(server.requests) == 3
    assert len(calls) == 1, "one question is one record"


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (Answer({"error": {"message": "boom"}}, 500), ModelError, "boom"),
        (Answer({"error": {"message": "who?"}}, 401), SetupError, "does not let us in"),
        (Answer({"error": {"message": "who?"}}, 404), SetupError, "atlas at .* is not there"),
        (Answer({"error": {"message": "too long"}}, 400), ModelError, "too long"),
        (Answer(drop=True), ModelError, "did not answer"),
        (Answer('{"name": "Par', finish="length"), ModelError, "raise max_tokens"),
    ],
)
def test_failures_say_what_happened(
    answer: Answer, error: type[HomerError], words: str, no_pauses: None
) -> None:
    with OpenAIServer(lambda _request: answer) as server, pytest.raises(error, match=words):
        chat_of(server, retries=1).ask(TURNS, City, purpose="act")


@pytest.mark.parametrize("supports", [EVERYTHING, {"tools", "usage"}, {"usage"}])
def test_a_reply_that_was_cut_off_is_counted_recorded_and_not_trusted(supports: set[str]) -> None:
    calls: list[CallRecord] = []
    said = Answer('{"name": "Par', finish="length", tokens=(300, 77))
    with (
        OpenAIServer([said] * 3, supports) as server,
        pytest.raises(ModelError, match="cut off after 77 tokens"),
    ):
        chat_of(server, calls.append).ask(TURNS, City, purpose="act")
    (call,) = calls
    assert (call.tokens_in, call.tokens_out) == (300, 77)
    assert call.reply == {"text": '{"name": "Par'}


def test_a_reply_that_was_whole_before_it_was_cut_off_counts() -> None:
    with OpenAIServer([Answer('{"name": "Paris"}\n\n\n\n', finish="length")]) as server:
        assert chat_of(server).ask(TURNS, City, purpose="act").name == "Paris"


def test_a_request_that_is_wrong_in_itself_does_not_change_how_we_ask() -> None:
    wrong = Answer({"error": {"message": "context too long"}}, 400)
    with OpenAIServer([wrong, wrong, wrong, {"name": "Paris"}]) as server:
        chat = chat_of(server)
        with pytest.raises(ModelError, match="context too long"):
            chat.ask(TURNS, City, purpose="act")
        chat.ask(TURNS, City, purpose="act")
        assert way_of(server.requests[-1]) == "json_schema"


@pytest.mark.parametrize(
    "slow", [Answer({"name": "x"}, delay_s=20), Answer({"name": "x"}, drip_s=0.2)]
)
def test_the_time_limit_holds_during_a_call(slow: Answer) -> None:
    calls: list[CallRecord] = []
    with OpenAIServer([{"name": "warm"}, slow]) as server:
        chat = chat_of(server, calls.append)
        chat.ask(TURNS, City, purpose="act")
        with pytest.raises(ModelError, match=r"no answer within 0\.\d s"):
            chat.ask(TURNS, City, purpose="act", timeout_s=0.5)
    assert "no answer" in str(calls[-1].error)
    assert calls[-1].reply is None


def test_no_server_is_said_plainly() -> None:
    with OpenAIServer() as server:
        pass
    with pytest.raises(ModelError, match=r"at http://127\.0\.0\.1.*did not answer"):
        chat_of(server).ask(TURNS, City, purpose="act")


class Memory:
    """A record of calls, as the store keeps one."""

    def __init__(self) -> None:
        self.calls: list[CallRecord] = []

    def find(self, digest: str) -> CallRecord | None:
        return next((call for call in self.calls if call.request_hash == digest), None)


def test_a_replay_gives_the_same_and_calls_nobody() -> None:
    memory = Memory()
    with OpenAIServer([{"name": "Paris"}, "gibberish"]) as server:
        chat = chat_of(server, memory.calls.append)
        first = chat.ask(TURNS, City, purpose="act", temperature=0.8, images=[JPEG])
        with pytest.raises(ModelError, match="gibberish") as live:
            chat.ask(TURNS, City, purpose="act", temperature=0.2)
        replay = chat_of(server, memory.calls.append, memory.find)
        again = replay.ask(TURNS, City, purpose="act", temperature=0.8, images=[JPEG])
        with pytest.raises(ModelError) as replayed:
            replay.ask(TURNS, City, purpose="act", temperature=0.2)
        assert len(server.requests) == 2
    assert again == first
    assert str(replayed.value) == str(live.value)
    assert len(memory.calls) == 2, "a replayed call is not a new one"


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 0.7},
        {"images": [JPEG + b"!"]},
        {"messages": [user("Why?")]},
        {"schema": Town},
    ],
)
def test_a_request_that_is_not_in_the_record_is_named(change: dict[str, Any]) -> None:
    memory = Memory()
    asked: dict[str, Any] = {
        "messages": TURNS,
        "schema": City,
        "temperature": 0.8,
        "images": [JPEG],
    }
    with OpenAIServer([{"name": "Paris"}]) as server:
        chat_of(server, memory.calls.append).ask(**asked, purpose="plan")
        replay = chat_of(server, replay=memory.find)
        with pytest.raises(ReplayMiss, match=r"'plan'.*openai:atlas"):
            replay.ask(**(asked | change), purpose="plan")


def test_key_comes_from_environment_and_goes_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_KEY", KEY)
    calls: list[CallRecord] = []
    echo = Answer({"error": {"message": f"key {KEY} has no credit"}}, 409)
    with OpenAIServer([{"name": "Paris"}, echo]) as server:
        chat = chat_of(server, calls.append, key="ATLAS_KEY")
        chat.ask(TURNS, City, purpose="act")
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
        with pytest.raises(ModelError, match="no credit") as caught:
            chat.ask(TURNS, City, purpose="act")
    assert KEY not in str(caught.value)
    assert KEY not in str(calls)


def test_ones_own_server_is_sent_no_key_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with OpenAIServer([{"name": "Paris"}]) as server:
        chat_of(server).ask(TURNS, City, purpose="act")
        assert KEY not in str(server.headers)


@pytest.mark.parametrize(
    ("model", "variable"),
    [("openai:gpt", "OPENAI_API_KEY"), ("google_genai:gemini", "GOOGLE_API_KEY")],
)
def test_keys_name_variables(model: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variable, raising=False)
    profile = Profile(name="p", chat={"default": ChatSpec(model=model)})
    chat = Toolbox(profile, Path("absent")).chat("writer")
    with pytest.raises(SetupError, match=variable):
        chat.check()
    with pytest.raises(SetupError, match=variable):
        chat.ask(TURNS, City, purpose="act")


def test_a_check_makes_no_call_and_a_replay_needs_no_key() -> None:
    with OpenAIServer() as server:
        chat_of(server).check()
        assert server.requests == []
    keyed = Profile(name="p", chat={"default": ChatSpec(model="openai:m", key="NOT_SET_ANYWHERE")})
    Toolbox(keyed, Path("absent")).chat("writer", replay=lambda _digest: None).check()


def test_an_unknown_provider_is_a_setup_error() -> None:
    profile = Profile(name="p", chat={"default": ChatSpec(model="nobody:m")})
    with pytest.raises(SetupError, match="nobody:m"):
        Toolbox(profile, Path("absent")).chat("writer").ask(TURNS, City, purpose="act")


def test_gemini_is_made_with_its_key_and_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    from models.endpoint import make_chat_model
    from models.profile import load_profile

    spec = load_profile("gemini").chat["default"]
    model: Any = make_chat_model(spec, 0.8)
    assert (type(model).__name__, model.temperature) == ("ChatGoogleGenerativeAI", 0.8)
    assert model.max_output_tokens == spec.max_tokens + spec.thinking_tokens
    assert KEY not in repr(model)


def test_a_call_s_span_has_what_it_took_and_on_request_what_was_said() -> None:
    exported = Exported()
    tracing.export_to(exported.traces, content=True)
    with OpenAIServer([{"name": "Paris"}]) as server:
        chat_of(server, max_tokens=300).ask(TURNS, City, purpose="plan", images=[JPEG])
    (call,) = exported.spans().values()
    attributes = dict(call.attributes or {})
    messages = {way: attributes.pop(f"gen_ai.{way}.messages") for way in ("input", "output")}
    assert attributes["gen_ai.request.model"] == "atlas"
    assert attributes["gen_ai.provider.name"] == "openai"
    assert attributes["gen_ai.request.max_tokens"] == 300
    assert attributes["gen_ai.usage.input_tokens"] != 0
    assert attributes["homer.purpose"] == "plan"
    assert "Paris" not in str(attributes)
    said = {way: json.loads(str(text)) for way, text in messages.items()}
    assert [turn["role"] for turn in said["input"]] == ["system", "user"]
    picture = {"type": "image", "content": hashlib.sha256(JPEG).hexdigest()}
    assert picture in said["input"][1]["parts"]
    assert "Paris" in said["output"][0]["parts"][0]["content"]


def test_a_model_that_stays_busy_is_said() -> None:
    with OpenAIServer([]) as server:
        chat = chat_of(server, at_once=1)
        with (
            Slots(f"openai:atlas {server.base_url}", 1).acquire(),
            pytest.raises(
                ModelError, match=r"busy with 1 other calls of this machine for 0\.1 s: see at_once"
            ),
        ):
            chat.ask(TURNS, City, purpose="act", timeout_s=0.1)
        assert server.requests == []
