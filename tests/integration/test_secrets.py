"""Keys are nowhere: not in rows, files, exports, messages, whatever a server sends back."""

from __future__ import annotations

import sys
import traceback
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import text

from domain.asking import Question
from domain.errors import HomerError, SetupError
from library.removal import export_video
from models import keys_and_packages
from models.endpoint import api_key
from models.keys_and_packages import REDACTED, read_key, redact, redacted_url, secrets_of_url
from models.profile import load_profile
from models.specs import ChatSpec
from models.toolbox import Toolbox
from store.backup import back_up
from store.database import Store
from tests.integration.test_forget import everything
from tests.support.asking import PARTY, remember_party
from tests.support.library import Quiet
from tests.support.obedient_model import LlmToolbox, obedient
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.runs import ask

pytestmark = pytest.mark.usefixtures("tampered")

KEY, RING, WORD, TOKEN = "sk-env-5d1f9a", "sk-ring-77c2", "pass-word-31e", "tok-en-8844"
PLANTED = (KEY, RING, WORD, TOKEN)
QUESTION = Question(text="Who opens the gate?", videos=(PARTY,))


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A key in the environment, and another in a keyring that answers."""
    monkeypatch.setenv("MY_KEY", KEY)
    ring = SimpleNamespace(get_password=lambda service, name: RING if name == "RING_KEY" else None)
    monkeypatch.setitem(sys.modules, "keyring", ring)
    monkeypatch.setattr(keys_and_packages, "find_spec", lambda _name: object())
    keys_and_packages._from_keyring.cache_clear()
    yield
    keys_and_packages._from_keyring.cache_clear()


def toolbox(server: OpenAIServer, key: str) -> LlmToolbox:
    """A model whose address has a password and a token."""
    address = server.base_url.replace("http://", f"http://ann:{WORD}@")
    box = LlmToolbox(server)
    spec = ChatSpec(
        model="openai:test", base_url=f"{address}?token={TOKEN}", key=key, retries=0, timeout_s=5
    )
    profile = box.profile.model_copy(update={"chat": {"default": spec}})
    Toolbox.__init__(box, profile, Path("/nonexistent"))
    return box


def told_back(status: int) -> Any:
    """A server that says in its answers all that it was sent."""
    whole = " ".join((*PLANTED, *secrets_of_url(f"http://ann:{WORD}@h?token={TOKEN}")))

    def answer(request: dict[str, Any]) -> Any:
        if status == 200:
            return Answer(f'{{"said": "{whole}"}}')
        return Answer({"error": {"message": f"wrong key: {whole}"}}, status)

    return answer


def search(store: Store, folder: Path, *more: str) -> set[str]:
    """Where any of it is: rows, files of the data directory, an export, a back-up, ``more``."""
    export_video(store, PARTY, folder / "party.zip")
    back_up(store, folder / "all.homer", Quiet())
    held = {"rows": "\n".join(row for _, row in everything(store)), "said": "\n".join(more)}
    for path in store.home.root.rglob("*"):
        held[path.name] = path.read_bytes().decode(errors="replace") if path.is_file() else ""
    for name in ("party.zip", "all.homer"):
        with zipfile.ZipFile(folder / name) as archive:
            parts = [archive.read(part).decode(errors="replace") for part in archive.namelist()]
        held[name] = "\n".join(parts)
    pairs = [(secret, place) for secret in PLANTED for place in held]
    return {f"{secret} in {place}" for secret, place in pairs if secret in held[place]}


@pytest.mark.parametrize(("status", "key"), [(401, "MY_KEY"), (500, "RING_KEY"), (200, "MY_KEY")])
def test_a_server_that_says_what_it_was_sent_leaves_no_secret(
    store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str], status: int, key: str
) -> None:
    remember_party(store)
    said = ""
    with OpenAIServer(told_back(status)) as server:
        try:
            ask(store, toolbox(server, key), QUESTION)
        except HomerError:
            said = traceback.format_exc()
        assert server.requests
    calls = "\n".join(row for table, row in everything(store) if table == "public.model_calls")
    assert calls or said
    out = capfd.readouterr()
    mine = {one for one in PLANTED if one != (RING if key == "MY_KEY" else KEY)}
    found = search(store, tmp_path, said, out.out, out.err)
    assert {one for one in found if one.split()[0] in mine} == set()


def test_what_is_recorded_says_that_something_was_left_out(store: Store) -> None:
    remember_party(store)
    with OpenAIServer(told_back(200)) as server:
        ask(store, toolbox(server, "MY_KEY"), QUESTION)
    with store.begin() as session:
        replies = session.scalars(text("SELECT reply ->> 'text' FROM model_calls")).all()
    assert any(REDACTED in (one or "") for one in replies)


def test_keys_of_the_keyring_come_second(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    remember_party(store)
    with OpenAIServer(obedient) as server:
        ask(store, LlmToolbox(server, key="RING_KEY"), QUESTION)
        assert {one["authorization"] for one in server.headers} == {f"Bearer {RING}"}
    monkeypatch.setenv("RING_KEY", "sk-other")
    assert read_key("RING_KEY") == "sk-other"


def test_a_keyring_that_fails_or_is_not_there_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(_service: str, _name: str) -> str:
        raise RuntimeError("the keyring is locked")

    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=locked))
    spec = ChatSpec(model="openai:gpt", key="NO_SUCH_KEY")
    with pytest.raises(SetupError, match="or `keyring set homer NO_SUCH_KEY`"):
        api_key(spec)
    keys_and_packages._from_keyring.cache_clear()
    monkeypatch.setattr(keys_and_packages, "find_spec", lambda _name: None)
    assert read_key("NO_SUCH_KEY") is None


def test_a_key_in_the_place_of_its_name_is_refused_and_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'[chat.default]\nmodel = "openai:gpt"\nkey = "{KEY}"\n')
    with pytest.raises(SetupError) as caught:
        load_profile(str(path))
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ann:secret@host:8/v1?key=abcdef", "https://host:8/v1"),
        ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1"),
    ],
)
def test_an_address_is_shown_without_what_is_secret_in_it(url: str, shown: str) -> None:
    assert redacted_url(url) == shown
    assert redact(f"at {url}", secrets_of_url(url)).count(REDACTED) == (2 if "ann" in url else 0)


def test_a_password_is_hidden_as_addresses_write_it() -> None:
    found = list(secrets_of_url("https://ann:p%40ss%2Fword@host"))
    for output in ("p@ss/word", "p%40ss%2Fword"):
        assert "ss" not in redact(output, found)


def test_what_is_too_short_to_be_a_secret_hides_no_words() -> None:
    assert redact("a cat sat", ["a", "", None]) == "a cat sat"
