"""A real language model, small enough for any machine, behind the same door as the large ones."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from domain.calls import CallRecord
from domain.errors import SetupError, WeightsMissing
from models.chat import StructuredChat
from models.hub import hub_language_model
from models.messages import system, user
from models.profile import Profile, load_profile
from models.specs import ChatSpec
from models.toolbox import Toolbox
from models.weights import verified_folder
from services.model_probe import make_picture
from store.home import Home
from tests.support.tiny_vision_model import IMAGE_TOKENS, write_tiny_vision_model

WEIGHTS = Home.default().weights


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
    return chat.ask(turns, Reading, purpose="read").value


@pytest.mark.full
def test_a_small_model_answers_in_form(toolbox: Toolbox) -> None:
    calls: list[CallRecord] = []
    reading = asked(toolbox.chat("reader", calls.append))
    assert reading.who == "Anna"
    assert reading.action == "repaired"
    assert "bicycle" in " ".join(reading.objects)
    assert calls[0].tokens_in > 20
    assert calls[0].cost_usd == 0


def test_without_its_weights_it_says_what_to_pull(tmp_path: Path) -> None:
    chat = Toolbox(load_profile("small"), tmp_path).chat("reader")
    with pytest.raises(WeightsMissing, match=r"homer models pull qwen2\.5-coder-1\.5b"):
        asked(chat)


def test_a_broken_file_does_not_take_the_process_down(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    from models.llama_server import llama_url

    broken = tmp_path / "model.gguf"
    broken.write_bytes(b"GGUF and then nothing of sense")
    with pytest.raises(SetupError, match="does not start"):
        llama_url(broken)


def test_without_the_extra_it_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from models.llama_server import llama_url

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
        assert reply.value.action in {"repaired", "bought", "lost"}
    blind, seeing = calls
    assert seeing.tokens_in - blind.tokens_in >= IMAGE_TOKENS
