"""A toolbox makes each model of its profile once, also beside something else."""

from __future__ import annotations

import sys
import threading
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from domain.errors import WeightsMissing
from models import endpoint, toolbox
from models.endpoint import api_key, llama_url
from models.profile import Profile, load_profile
from models.specs import ChatSpec
from models.text_embedding import EncoderFiles
from models.toolbox import Toolbox, preloading

MODELS = {
    "speech": ("models.toolbox", "WhisperRecognizer"),
    "activity": ("models.toolbox", "SileroActivity"),
    "faces": ("models.faces", "InsightFaceEngine"),
    "speaker": ("models.toolbox", "WeSpeakerEncoder"),
    "screen": ("models.objects_and_texts", "RapidOcrReader"),
    "objects": ("models.objects_and_texts", "YoloxDetector"),
    "sounds": ("models.toolbox", "YamnetClassifier"),
    "text": ("models.toolbox", "OnnxTextEmbedder"),
    "reranker": ("models.toolbox", "CrossEncoderReranker"),
}
"""Models whose files come with their packages."""


class Made:
    """An adapter that only says what it was made of."""

    def __init__(self, *args: Any, **more: Any) -> None:
        self.args, self.more = args, more


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models whose files were checked; adapters are made in name only."""
    asked: list[str] = []

    def verified_folder(weights: Path, name: str) -> Path:
        asked.append(name)
        return weights / name

    monkeypatch.setattr(toolbox, "verified_folder", verified_folder)
    for module, name in {*MODELS.values(), ("models.faces", "YunetSfaceEngine")}:
        monkeypatch.setattr(f"{module}.{name}", Made)
    return asked


def box(**more: Any) -> Toolbox:
    return Toolbox(Profile(name="p", **more), Path("/weights"))


@pytest.mark.parametrize("port", MODELS)
def test_a_model_is_made_when_it_is_first_used_and_kept(checked: list[str], port: str) -> None:
    made = box()
    assert checked == []
    assert getattr(made, port) is getattr(made, port)
    assert len(checked) == (port not in ("activity", "screen"))


def test_files_are_those_that_the_profile_names(checked: list[str]) -> None:
    profile = {"speech": "whisper-base", "faces": "yunet_sface", "text": "bge-small"}
    made: Any = box(**profile, languages=("de", "en"))
    assert made.speech.args == ("whisper-base", Path("/weights/whisper-base"), ("de", "en"))
    assert made.faces.args == (Path("/weights/yunet_sface"),)
    folder = Path("/weights/bge-small")
    files = EncoderFiles(folder / "model.onnx", folder / "tokenizer.json", "first")
    assert made.text.args == ("bge-small", files)
    assert checked == ["whisper-base", "yunet_sface", "bge-small"]


@pytest.mark.parametrize(("text", "batch"), [("bge-small", 1), ("minilm", 32)])
def test_some_models_embed_rows_alone(checked: list[str], text: str, batch: int) -> None:
    made: Any = box(text=text)
    assert made.text.more["batch"] == batch


def test_what_a_profile_does_without_is_none_and_nothing_is_looked_for(checked: list[str]) -> None:
    made = box(reranker=None)
    assert made.reranker is None
    assert made.images is None
    assert checked == []


def test_files_that_are_not_there_are_looked_for_again_the_next_time(
    checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = box()

    def missing(weights: Path, name: str) -> Path:
        raise WeightsMissing(f"{name} is missing")

    with monkeypatch.context() as patch:
        patch.setattr(toolbox, "verified_folder", missing)
        with pytest.raises(WeightsMissing):
            _ = made.text
    assert isinstance(made.text, Made)


def test_roles_of_one_model_share_what_is_learned_about_its_server(checked: list[str]) -> None:
    one, other = ChatSpec(model="openai:a"), ChatSpec(model="openai:b")
    made: Any = box(chat={"default": one, "judge": other, "writer": one})
    chats = {role: made.chat(role) for role in ("default", "judge", "writer", "reasoner")}
    assert chats["writer"]._endpoint is chats["default"]._endpoint is chats["reasoner"]._endpoint
    assert chats["judge"]._endpoint is not chats["default"]._endpoint
    assert chats["judge"].model == "openai:b"


def test_model_that_sees_has_its_projector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put there by hand: the projector is never taken for the model, whatever its form is."""
    served: list[tuple[str, ...]] = []

    def serve(*files: Path) -> str:
        served.append(tuple(file.name for file in files))
        return "http://127.0.0.1:7/v1"

    def factory(spec: ChatSpec, heat: float | None) -> Any:
        return object()

    monkeypatch.setattr(toolbox, "llama_url", serve)
    profile = load_profile("vision")
    (hub,) = profile.hub_models
    hub.folder(tmp_path).mkdir(parents=True)
    for name in ("a-F16.gguf", "a-Q4_K_M.gguf", "mmproj-a-Q4_K_M.gguf", "mmproj-a-Q8_0.gguf"):
        (hub.folder(tmp_path) / name).write_bytes(b"GGUF")
    made = Toolbox(profile, tmp_path, factory)
    for role in ("writer", "reader"):
        made.chat(role).check()
    assert set(served) == {("a-Q4_K_M.gguf", "mmproj-a-Q8_0.gguf")}


class Params:
    """Settings of a server, to any depth."""

    def __getattr__(self, name: str) -> Params:
        self.__dict__[name] = Params()
        found: Params = self.__dict__[name]
        return found


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package of llama.cpp that starts nothing."""
    package: Any = ModuleType("xllamacpp")
    package.started = []

    class Server:
        listening_address = "http://127.0.0.1:4321"

        def __init__(self, params: Any) -> None:
            if "broken" in params.model.path:
                raise RuntimeError("unknown format")
            package.started.append(params)

    package.CommonParams, package.Server = Params, Server
    package.get_device_info = lambda: [{"type": "CPU"}]
    monkeypatch.setitem(sys.modules, "xllamacpp", package)
    monkeypatch.setattr(endpoint, "_running", [])
    llama_url.cache_clear()
    found: ModuleType = package
    return found


def test_a_model_is_served_once_to_this_machine_only(server: Any, tmp_path: Path) -> None:
    assert llama_url(tmp_path / "a.gguf") == "http://127.0.0.1:4321/v1"
    assert llama_url(tmp_path / "a.gguf") == llama_url(tmp_path / "a.gguf")
    llama_url(tmp_path / "b.gguf")
    found = [one.model.path for one in server.started]
    assert found == [str(tmp_path / "a.gguf"), str(tmp_path / "b.gguf")]
    assert {tuple(one.hostnames) for one in server.started} == {("127.0.0.1",)}
    assert {tuple(one.api_keys) for one in server.started} == {(endpoint.KEY,)}
    served = ChatSpec(model="llama:tiny", base_url="http://127.0.0.1:4321/v1")
    assert api_key(served) == endpoint.KEY
    llama_url.cache_clear()


class Slow:
    """A toolbox whose models are made when they are let; it tells what was made where."""

    def __init__(self, missing: bool = False) -> None:
        self.let, self.missing = threading.Event(), missing
        self.made: list[tuple[str, bool]] = []

    @cached_property
    def text(self) -> str:
        return self._make("text")

    @cached_property
    def reranker(self) -> str:
        assert self.let.wait(10)
        return self._make("reranker")

    def _make(self, name: str) -> str:
        self.made.append((name, threading.current_thread() is threading.main_thread()))
        if self.missing:
            raise WeightsMissing(f"{name} is not there")
        return name


def as_toolbox(slow: Slow) -> Toolbox:
    return cast(Toolbox, slow)


def test_models_are_loaded_once_beside_what_is_done() -> None:
    slow = Slow()
    with preloading(as_toolbox(slow), ("text", "reranker")):
        assert slow.text == "text", "waits for no model that comes after it"
        slow.let.set()
        assert slow.reranker == "reranker"
    assert slow.made == [("text", False), ("reranker", False)]


def test_what_is_loading_is_waited_for_at_the_end() -> None:
    slow = Slow()
    slow.let.set()
    with pytest.raises(KeyboardInterrupt), preloading(as_toolbox(slow), ("text", "reranker")):
        raise KeyboardInterrupt
    assert [name for name, _ in slow.made] == ["text", "reranker"]


def test_a_model_that_is_missing_is_told_to_who_wants_it(capsys: Any) -> None:
    slow = Slow(missing=True)
    with (
        preloading(as_toolbox(slow), ("text",)),
        pytest.raises(WeightsMissing, match="text is not there"),
    ):
        _ = slow.text
    assert capsys.readouterr().err == ""
