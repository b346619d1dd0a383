"""A reply that is told while the model writes it, from every kind of server."""

from __future__ import annotations

import json
import threading
import time
from itertools import pairwise
from typing import Any

import pytest

from domain.calls import CallRecord
from domain.errors import ModelError
from models.chat import ChatReply, StructuredChat
from tests.contract.test_chat import TURNS, City, chat_of, way_of
from tests.support.openai_server import EVERYTHING, Answer, OpenAIServer

PARIS = {"name": "Paris", "people": 2, "sights": ["a tower", "a bridge"]}
KINDS = [(EVERYTHING, "json_schema"), (EVERYTHING - {"json_schema"}, "tools")]
KINDS.append((EVERYTHING - {"json_schema", "tools"}, "text"))


def heard(chat: StructuredChat, **more: Any) -> tuple[ChatReply[City], list[str]]:
    output: list[str] = []
    return chat.ask(TURNS, City, purpose="act", on_text=output.append, **more), output


@pytest.mark.parametrize(("supports", "way"), KINDS)
def test_every_kind_of_server_is_heard_as_it_writes(supports: frozenset[str], way: str) -> None:
    with OpenAIServer([PARIS], supports) as server:
        reply, output = heard(chat_of(server))
        last = server.requests[-1]
    assert reply.value == City(**PARIS)
    assert way_of(last) == way
    assert last["stream"]
    assert len(output) > 5
    assert all(later.startswith(earlier) for earlier, later in pairwise(output))
    assert City(**json.loads(output[-1])) == City(**PARIS)


@pytest.mark.parametrize(("supports", "way"), KINDS)
def test_a_live_reply_is_recorded_like_any_other(supports: frozenset[str], way: str) -> None:
    records: list[CallRecord] = []
    with OpenAIServer([PARIS, PARIS], supports) as server:
        live, _ = heard(chat_of(server, records.append))
        chat_of(server, records.append).ask(TURNS, City, purpose="act")
    one, other = records
    assert one.request_hash == other.request_hash
    assert (one.tokens_in, one.tokens_out) == (other.tokens_in, other.tokens_out) == (100, 20)
    assert json.loads(one.reply["text"]) == json.loads(other.reply["text"])  # type: ignore[index]
    assert live.tokens_out == 20


def test_who_does_not_listen_is_sent_the_reply_in_one_piece() -> None:
    with OpenAIServer([PARIS]) as server:
        chat_of(server).ask(TURNS, City, purpose="act")
        assert not server.requests[0].get("stream")


@pytest.mark.parametrize(("supports", "way"), KINDS)
def test_server_that_sends_no_pieces_is_asked_for_whole(supports: frozenset[str], way: str) -> None:
    with OpenAIServer([PARIS, PARIS], supports - {"stream"}) as server:
        chat = chat_of(server)
        assert heard(chat)[0].value == heard(chat)[0].value == City(**PARIS)
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
