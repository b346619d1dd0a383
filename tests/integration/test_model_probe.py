"""The doctor finds out what a model on a server can do, by a picture and a short clip."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from cli.main import app
from domain.settings import MemorySettings, Settings, WatchSettings
from library import upkeep
from models.hub import hub_language_model
from models.profile import Profile
from models.specs import ChatSpec
from models.toolbox import Toolbox
from services.health import Check
from services.model_probe import (
    COLOURS,
    CONTEXTS,
    COUNTS,
    Abilities,
    probe,
    probe_checks,
    probe_models,
)
from tests.support.openai_server import EVERYTHING, Answer, OpenAIServer
from tests.support.scripted_chat import scripted
from tests.support.tiny_vision_model import write_tiny_vision_model


def named(pixels: NDArray[np.uint8]) -> str:
    """The colour that is nearest to these pixels' mean."""
    mean = pixels.reshape(-1, 3).mean(axis=0)
    return min(COLOURS, key=lambda name: float(np.abs(mean - COLOURS[name]).sum()))


def file_of(part: dict[str, Any]) -> bytes:
    return base64.b64decode(part[part["type"]]["url"].partition(",")[2])


class Eyes:
    """A model that looks at what it is sent, as far as it is said to."""

    def __init__(
        self, *, pictures: bool = True, videos: bool = True, most: int = 100, context: int = 10**6
    ) -> None:
        self.pictures, self.videos, self.most, self.context = pictures, videos, most, context

    def __call__(self, request: dict[str, Any]) -> Any:
        content = request["messages"][0]["content"]
        if request["messages"][0]["role"] == "system":
            if "You write the memory of a long video" in content:
                return {"lines": [{"kind": "episodic", "text": "Two colours are seen."}]}
            return {"action": "search", "mode": "event", "query": "somebody opens a gate"}
        files = [] if isinstance(content, str) else [p for p in content if p["type"] != "text"]
        if len(files) > self.most:
            return Answer({"error": {"message": "too many images"}}, status=400)
        if not files:
            read = str(content)[
                -4 * self.context :
            ]  # As Ollama cuts a request: from its beginning.
            return {"colours": ["blue" if "is blue" in read else "green"]}
        if files[0]["type"] == "video_url":
            return {"colours": self._clip(files[0]) if self.videos else ["red", "white"]}
        return {"colours": self._picture(files[0]) if self.pictures else ["red", "white"]}

    def _picture(self, part: dict[str, Any]) -> list[str]:
        bgr: Any = cv2.imdecode(np.frombuffer(file_of(part), np.uint8), cv2.IMREAD_COLOR)
        rgb = bgr[:, :, ::-1]
        half = len(rgb) // 2
        return [named(rgb[: half - 8]), named(rgb[half + 8 :])]

    def _clip(self, part: dict[str, Any]) -> list[str]:
        with av.open(io.BytesIO(file_of(part)), "r") as container:
            assert container.streams.audio
            pictures = (one.to_ndarray(format="rgb24") for one in container.decode(video=0))
            shown = [named(np.asarray(pixels, dtype=np.uint8)) for pixels in pictures]
        return list(dict.fromkeys(shown))


def probed(eyes: Eyes, supports: Iterable[str] = EVERYTHING) -> tuple[Abilities, int]:
    with OpenAIServer(eyes, supports) as server:
        spec = ChatSpec(model="openai:m", base_url=server.base_url, timeout_s=20)
        return probe(spec), len(server.requests)


def test_a_model_that_can_do_everything_is_found_out_by_a_few_calls() -> None:
    found, calls = probed(Eyes())
    whole = Abilities(("json_schema", "tools", "text"), True, COUNTS[0], True, context=CONTEXTS[0])
    assert found == whole
    assert calls <= 12


@pytest.mark.parametrize(
    ("eyes", "lacking", "expected"),
    [
        (Eyes(pictures=False), set(), Abilities(("json_schema", "tools", "text"))),
        (Eyes(videos=False), set(), Abilities(("json_schema", "tools", "text"), True, 24)),
        (Eyes(most=5), set(), Abilities(("json_schema", "tools", "text"), True, 4, True)),
        (Eyes(most=1), set(), Abilities(("json_schema", "tools", "text"), True, 1, True)),
        (Eyes(), {"images"}, Abilities(("json_schema", "tools", "text"))),
        (Eyes(), {"json_schema"}, Abilities(("tools", "text"), True, 24, True)),
        (Eyes(), {"json_schema", "tools"}, Abilities(("text",), True, 24, True)),
    ],
)
def test_what_model_cannot_is_found_out(eyes: Eyes, lacking: set[str], expected: Abilities) -> None:
    expected = replace(expected, context=CONTEXTS[0])
    assert probed(eyes, EVERYTHING - lacking)[0] == expected


def test_a_server_that_cuts_requests_silently_is_found_out_and_what_to_do_is_said() -> None:
    found, _ = probed(Eyes(context=4_096))
    assert found.context == 3_000
    check = told(ChatSpec(model="openai:m"), found)["writer reads"]
    assert check.warning
    assert "OLLAMA_CONTEXT_LENGTH" in check.fix
    assert "chat.writer.context_tokens = 3000" in check.fix


def told(spec: ChatSpec, found: Abilities) -> dict[str, Check]:
    return {check.what: check for check in probe_checks("writer", spec, found, Settings())}


def test_the_settings_that_follow_are_said() -> None:
    spec = ChatSpec(model="openai:m", images=False)
    whole = told(spec, Abilities(("tools",), True, 24, True))
    assert whole["writer settings"].found == (
        'images = true, video = true, structure = "tools"; at most clip_view = "video"'
    )
    assert whole["writer sees pictures"].found == "yes, 24 images in a call"
    assert whole["writer sees pictures"].warning
    assert whole["writer sees pictures"].fix == "set chat.writer.images = true in the profile"
    assert whole["writer calls tools"].found == "yes"
    assert whole["writer keeps to a JSON schema"].found == "no"
    frames = told(spec, Abilities(("json_schema",), True, 16))
    assert frames["writer settings"].found.endswith('clip_view = "frames"')
    few = told(spec, Abilities(("json_schema",), True, 8))
    assert few["writer settings"].found.endswith('clip_view = "keyframes"')
    assert not few["writer watches videos"].warning


def test_the_command_asks_the_models_of_a_named_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "check_setup", lambda *_: iter([Check("home", True, "here")]))
    with OpenAIServer(Eyes(videos=False)) as server:
        spec = ChatSpec(model="openai:m", base_url=server.base_url)
        profile = Profile(name="p", writer="llm", chat={"default": spec})
        monkeypatch.setattr(upkeep, "load_profile", lambda *_: profile)
        plain = CliRunner().invoke(app, ["doctor", "--json"])
        assert not server.requests, "nothing is sent anywhere without --profile"
        asked = CliRunner().invoke(app, ["doctor", "--profile", "p", "--json"])
    assert (plain.exit_code, asked.exit_code) == (0, 0)
    found = {row["what"]: row["found"] for row in json.loads(asked.stdout)}
    assert found["default watches videos"] == "no"
    assert 'clip_view = "frames"' in found["default settings"]
    gone = CliRunner().invoke(app, ["doctor", "--profile", "p"])
    assert gone.exit_code == 3
    assert "default answers" in gone.stdout


def shapes(answer: Callable[[dict[str, Any]], Any]) -> tuple[dict[str, Check], list[Any]]:
    """The checks of a profile whose model writes and answers, and what was sent as then."""
    with OpenAIServer(answer) as server:
        spec = ChatSpec(model="openai:m", base_url=server.base_url, retries=0)
        profile = Profile(name="p", writer="llm", reasoner="llm", chat={"default": spec})
        checks = {check.what: check for check in probe_models(Toolbox(profile, Path("none")))}
        sent = [one for one in server.requests if one["messages"][0]["role"] == "system"]
    return checks, sent


def test_a_clip_and_a_round_are_tried_as_they_will_be_sent() -> None:
    checks, (clip, step) = shapes(Eyes())
    assert checks["writer writes a clip"].ok
    assert checks["reasoner takes a step"].ok
    roles = [[message["role"] for message in one["messages"]] for one in (clip, step)]
    assert roles[0] == ["system", "user", "user"], "a repair"
    assert roles[1] == ["system", "user", "assistant", "user", "user"], "after a search"
    assert [part["type"] for part in clip["messages"][-1]["content"]].count("image_url") == 2
    forms = [one["response_format"]["json_schema"]["schema"] for one in (clip, step)]
    assert {"lines", "same", "names", "keyframes"} <= forms[0]["properties"].keys()
    assert {"action", "mode", "query", "citations"} <= forms[1]["properties"].keys()


def test_what_a_server_refuses_of_them_is_said() -> None:
    def refusing(request: dict[str, Any]) -> Any:
        if "You write the memory of a long video" in str(request["messages"][0]["content"]):
            return Answer({"error": {"message": "the request is too large"}}, status=413)
        return Eyes()(request)

    checks, _ = shapes(refusing)
    assert not checks["writer writes a clip"].ok
    found = checks["writer writes a clip"].found
    assert found.startswith("what Homer sends for it is refused: ")
    assert "too large" in found
    assert checks["reasoner takes a step"].ok


def in_process(tmp_path: Path, **changes: Any) -> Profile:
    """A profile whose writer is a tiny model in this process, and so is its reader."""
    write_tiny_vision_model(hub_language_model("homer/tiny", sees=True).folder(tmp_path))
    spec = ChatSpec(model="llama:homer/tiny", max_tokens=2_048)
    chat = {"default": spec, "reader": spec.model_copy(update={"max_tokens": 512})}
    return Profile(name="p", chat=chat, **changes)


def test_a_model_in_this_process_is_measured_once(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    (check,) = probe_models(Toolbox(in_process(tmp_path), tmp_path))
    assert (check.what, check.ok) == ("default speed", True)
    assert re.fullmatch(r"reads [\d,]+ and writes [\d,]+ tokens a second", check.found)


def test_how_long_an_hour_takes_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((0, 9, 10, 12, 20, 32))
    monkeypatch.setattr("models.chat.time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr("models.toolbox.llama_url", lambda *_: "http://127.0.0.1:1/v1")
    # 20 tokens are written in 2 seconds; 100 are read in 12 seconds, 2 of which are the reply's.
    models = scripted([{"noted": True}, {"digits": 24 * [1]}, {"noted": True}])
    watch, memory = WatchSettings(keyframes=2), MemorySettings(clip_frames=4, second_look=True)
    profile = in_process(tmp_path, writer="llm", settings=Settings(watch=watch, memory=memory))
    (check,) = probe_models(Toolbox(profile, tmp_path, models))
    hours = 2 * ((6 * 512 + 1_500) / 10 + 12 * 30 / 10) / 30
    assert check.found == (
        f"reads 10 and writes 10 tokens a second: an hour of video takes about {hours:.1f} hours"
    )
