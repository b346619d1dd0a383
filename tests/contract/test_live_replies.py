"""Replies told while a model writes them, and a small model behind the same door."""

from __future__ import annotations

import json
import threading
import time
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from domain.calls import CallRecord
from domain.errors import ModelError, SetupError, WeightsMissing
from models.chat import StructuredChat
from models.hub import hub_language_model
from models.messages import system, user
from models.profile import Profile, load_profile
from models.specs import ChatSpec
from models.toolbox import Toolbox
from models.weights import verified_folder
from services.model_probe import make_picture
from store.home import Home
from tests.contract.test_chat import TURNS, City, chat_of, way_of
from tests.support.openai_server import EVERYTHING, Answer, OpenAIServer
from tests.support.tiny_vision_model import IMAGE_TOKENS, write_tiny_vision_model

PARIS = {"name": "Paris", "people": 2, "sights": ["a tower", "a bridge"]}
KINDS = [(EVERYTHING, "json_schema"), (EVERYTHING - {"json_schema"}, "tools")]
KINDS.append((EVERYTHING - {"json_schema", "tools"}, "text"))

WEIGHTS = Home.default().weights


def heard(chat: StructuredChat, **more: Any) -> tuple[City, list[str]]:
    output: list[str] = []
    return chat.ask(TURNS, City, purpose="act", on_text=output.append, **more), output


@pytest.mark.parametrize(("supports", "way"), KINDS)
def test_every_kind_of_server_is_heard_as_it_writes(supports: frozenset[str], way: str) -> None:
    with OpenAIServer([PARIS], supports) as server:
        reply, output = heard(chat_of(server))
        last = server.requests[-1]
    assert reply == City(**PARIS)
    assert way_of(last) == way
    assert last["stream"]
    assert len(output) > 5
    assert all(later.startswith(earlier) for earlier, later in pairwise(output))
    assert City(**json.loads(output[-1])) == City(**PARIS)


@pytest.mark.parametrize(("supports", "way"), KINDS)
def test_a_live_reply_is_recorded_like_any_other(supports: frozenset[str], way: str) -> None:
    records: list[CallRecord] = []
    with OpenAIServer([PARIS, PARIS], supports) as server:
        heard(chat_of(server, records.append))
        chat_of(server, records.append).ask(TURNS, City, purpose="act")
    one, other = records
    assert one.request_hash == other.request_hash
    assert (one.tokens_in, one.tokens_out) == (other.tokens_in, other.tokens_out) == (100, 20)
    assert json.loads(one.reply["text"]) == json.loads(other.reply["text"])  # type: ignore[index]


@pytest.mark.parametrize(("supports", "way"), KINDS)
def test_server_that_sends_no_pieces_is_asked_for_whole(supports: frozenset[str], way: str) -> None:
    with OpenAIServer([PARIS, PARIS], supports - {"stream"}) as server:
        chat = chat_of(server)
        assert heard(chat)[0] == heard(chat)[0] == City(**PARIS)
        last = server.requests[-2:]
    assert [way_of(request) for request in last] == [way, way]
    # What it refused once it is not asked again.
    assert not any(request.get("stream") for request in last)


@pytest.mark.parametrize(("supports", "way"), KINDS)
def test_a_live_reply_cut_off_is_counted_not_trusted(supports: frozenset[str], way: str) -> None:
    records: list[CallRecord] = []
    cut = Answer('{"name": "Par', finish="length", tokens=(100, 512))
    with OpenAIServer([cut], supports) as server, pytest.raises(ModelError, match="was cut off"):
        heard(chat_of(server, records.append))
    assert records[0].tokens_out == 512
    assert "Par" in str(records[0].reply)


def test_no_word_comes_after_a_call_was_given_up() -> None:
    output: list[str] = []
    with OpenAIServer([Answer(PARIS, pause_s=0.15)]) as server:
        with pytest.raises(ModelError, match="no answer within"):
            chat_of(server).ask(TURNS, City, purpose="act", on_text=output.append, timeout_s=0.5)
        known = len(output)
        time.sleep(0.5)
    assert 0 < known == len(output) < 9


def test_who_listens_can_stop_the_reply() -> None:
    def stop(_text: str) -> None:
        raise KeyboardInterrupt

    with OpenAIServer([Answer(PARIS, pause_s=0.2)]) as server:
        began = threading.active_count()
        with pytest.raises(KeyboardInterrupt):
            chat_of(server).ask(TURNS, City, purpose="act", on_text=stop)
        assert threading.active_count() <= began + 2


class Reading(BaseModel):
    """What a sentence says."""

    who: str = Field(description="the person's name")
    action: Literal["repaired", "bought", "lost"]
    objects: list[str] = Field(description="what it was done to", max_length=3)


@pytest.fixture(scope="module")
def toolbox() -> Toolbox:
    profile = load_profile("small")
    try:
        verified_folder(WEIGHTS, profile.chat["reader"].model_name)
    except WeightsMissing as missing:
        pytest.skip(str(missing))
    if find_spec("xllamacpp") is None:
        pytest.skip("the extra 'llama' is not installed")
    return Toolbox(profile, WEIGHTS)


def asked(chat: StructuredChat) -> Reading:
    turns = [system("Read the sentence."), user("On Monday Anna repaired the old bicycle.")]
    return chat.ask(turns, Reading, purpose="read")


@pytest.mark.full
def test_a_small_model_answers_in_form(toolbox: Toolbox) -> None:
    calls: list[CallRecord] = []
    reading = asked(toolbox.chat("reader", calls.append))
    assert (reading.who, reading.action) == ("Anna", "repaired")
    assert "bicycle" in " ".join(reading.objects)
    assert calls[0].tokens_in > 20
    assert calls[0].cost_usd == 0


def test_without_its_weights_it_says_what_to_pull(tmp_path: Path) -> None:
    chat = Toolbox(load_profile("small"), tmp_path).chat("reader")
    with pytest.raises(WeightsMissing, match=r"homer models pull qwen2\.5-coder-1\.5b"):
        asked(chat)


def test_a_broken_file_does_not_take_the_process_down(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    from models.endpoint import llama_url

    broken = tmp_path / "model.gguf"
    broken.write_bytes(b"GGUF and then nothing of sense")
    with pytest.raises(SetupError, match="does not start"):
        llama_url(broken)


def test_without_the_extra_it_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from models.endpoint import llama_url

    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(SetupError, match=r'extra "llama".*xllamacpp'):
        llama_url(tmp_path / "any.gguf")


def test_a_model_with_a_projector_sees_and_is_held_to_a_schema(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    write_tiny_vision_model(hub_language_model("homer/tiny", sees=True).folder(tmp_path))
    spec = ChatSpec(model="llama:homer/tiny", max_tokens=1_024)
    calls: list[CallRecord] = []
    chat = Toolbox(Profile(name="tiny", chat={"writer": spec}), tmp_path).chat(
        "writer", calls.append
    )
    for images in ([], [make_picture()]):
        reply = chat.ask([user("What is it?")], Reading, purpose="read", images=images)
        assert reply.action in {"repaired", "bought", "lost"}
    blind, seeing = calls
    assert seeing.tokens_in - blind.tokens_in >= IMAGE_TOKENS
