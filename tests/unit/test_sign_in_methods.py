"""Passwords, sessions and tries: what is kept, how long, and how often."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auth import signing_in as door
from auth.signin_page import safe_redirect
from auth.signing_in import (
    FILE_VARIABLE,
    HOSTS_VARIABLE,
    SESSION_S,
    VARIABLE,
    Oidc,
    Sessions,
    Throttle,
    hash_password,
    is_loopback,
    load_oidc,
    password_file,
    password_matches,
    remove_password,
    secrets_file,
    set_password,
    set_password_from_environment,
    sign_in_methods,
    stored_hash,
    verified_name,
)
from domain.errors import InputError, SetupError
from library.rights import check_user
from store.home import Home
from tests.support.full_suite import examples

WORD = "correct horse"
AUTH = """
[auth]
redirect_uri = "http://localhost:8501/oauth2callback"
cookie_secret = "a secret that is long enough"
"""
PROVIDER = 'client_id = "homer"\nclient_secret = "x"\nserver_metadata_url = "http://x"\n'


class Clock:
    """A clock that a test winds."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    for name in (VARIABLE, FILE_VARIABLE, HOSTS_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    return Home(tmp_path / "home").make()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@settings(max_examples=examples(2, 20))
@given(st.text(max_size=40), st.text(max_size=40))
def test_a_hash_fits_its_own_password_only(one: str, other: str) -> None:
    stored = hash_password(one)
    assert password_matches(stored, one)
    assert password_matches(stored, other) == (one == other)
    assert hash_password(one) != stored


@pytest.mark.parametrize(
    "stored",
    [None, "", "x", WORD, "scrypt$1$2$3", "scrypt$a$8$1$eA==$eA==", "scrypt$3$8$1$eA==$eA==",
     "scrypt$16384$8$1$eA==$", "md5$16384$8$1$eA==$eA=="],
)  # fmt: skip
def test_nonsense_in_its_place_lets_nobody_in(stored: str | None) -> None:
    assert not password_matches(stored, "")
    assert not password_matches(stored, WORD)


def test_only_a_hash_is_stored_and_only_its_owner_reads_it(place: Home) -> None:
    set_password(place, WORD)
    found = password_file(place)
    assert WORD not in found.read_text()
    assert stat.S_IMODE(found.stat().st_mode) == 0o600
    assert password_matches(stored_hash(place), WORD)
    assert remove_password(place)
    assert not remove_password(place)
    assert stored_hash(place) is None


def test_a_short_password_is_refused(place: Home) -> None:
    with pytest.raises(InputError, match="at least 8"):
        set_password(place, "1234567")
    assert stored_hash(place) is None


def test_the_environment_gives_password_once(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, WORD)
    set_password_from_environment(place)
    assert VARIABLE not in os.environ
    first = stored_hash(place)
    monkeypatch.setenv(VARIABLE, WORD)
    set_password_from_environment(place)
    assert stored_hash(place) == first
    set_password_from_environment(place)
    assert password_matches(stored_hash(place), WORD)


def test_files_give_passwords(place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "word"
    path.write_text(f"{WORD}\r\nand more\n")
    monkeypatch.setenv(FILE_VARIABLE, str(path))
    set_password_from_environment(place)
    assert password_matches(stored_hash(place), WORD)
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "none"))
    with pytest.raises(InputError, match="cannot be read"):
        set_password_from_environment(place)


def test_a_session_ends_with_its_time_its_password_and_when_it_is_signed_out(clock: Clock) -> None:
    known = Sessions(clock)
    token = known.begin("hash")
    assert known.is_valid(token, "hash")
    assert not known.is_valid(token, "another hash")
    assert not known.is_valid(token, None)
    assert not known.is_valid("", "")
    assert not known.is_valid(token + "x", "hash")
    clock.now += SESSION_S
    assert not known.is_valid(token, "hash")
    other = known.begin("hash")
    known.end(other)
    assert not known.is_valid(other, "hash")
    assert token not in str(vars(known))


def test_whoever_fails_five_times_waits_and_nobody_else(clock: Clock) -> None:
    throttle = Throttle(clock=clock)
    assert [throttle.wait("1.2.3.4") for _ in range(5)] == [0] * 5
    assert throttle.wait("1.2.3.4") == pytest.approx(60)
    clock.now += 20
    assert throttle.wait("1.2.3.4") == pytest.approx(40)
    assert throttle.wait("1.2.3.5") == 0
    clock.now += 40
    assert throttle.wait("1.2.3.4") == 0


def test_who_gets_in_begins_anew(clock: Clock) -> None:
    throttle = Throttle(clock=clock)
    for _ in range(5):
        throttle.wait("a")
    throttle.reset("a")
    assert throttle.wait("a") == 0


def test_many_addresses_of_one_network_are_one_and_all_together_have_a_limit(clock: Clock) -> None:
    throttle = Throttle(clock=clock)
    waits = [throttle.wait(f"2001:db8:0:1::{n:x}") for n in range(7)]
    assert [bool(one) for one in waits] == [False] * 5 + [True] * 2
    crowd = Throttle(clock=clock)
    waits = [crowd.wait(f"10.0.{n}.1") for n in range(70)]
    assert sum(not one for one in waits) == 60


def test_addresses_that_stand_for_ipv4_are_distinguished(clock: Clock) -> None:
    throttle = Throttle(clock=clock)
    assert [throttle.wait("::ffff:10.0.0.1") for _ in range(5)] == [0] * 5
    assert throttle.wait("::ffff:10.0.0.1") > 0
    assert throttle.wait("10.0.0.1") > 0
    assert throttle.wait("::ffff:10.0.0.2") == 0


def test_a_crowd_shuts_nobody_out(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auth.signing_in.MAX_ENTRIES", 100)
    crowd = Throttle(clock=clock)
    assert sum(not one for one in [crowd.wait(f"10.0.{n}.1") for n in range(200)]) == 60
    assert len(crowd._tries) <= 101
    clock.now += 60
    assert crowd.wait("192.0.2.7") == 0


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.7", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_what_only_this_machine_reaches(host: str, here: bool) -> None:
    assert is_loopback(host) == here


def test_beyond_this_machine_one_has_to_sign_in(place: Home) -> None:
    assert not sign_in_methods(place, "127.0.0.1").required
    with pytest.raises(SetupError, match=r"everybody who can reach 0\.0\.0\.0.*homer password"):
        sign_in_methods(place, "0.0.0.0")
    set_password(place, WORD)
    for host in ("0.0.0.0", "127.0.0.1"):
        assert sign_in_methods(place, host).password
    assert sign_in_methods(place, "0.0.0.0").names == ()
    assert "localhost" in sign_in_methods(place, "127.0.0.1").names


def test_a_name_a_proxy_leads_in_by_is_beyond(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOSTS_VARIABLE, "homer.example, two.example")
    with pytest.raises(SetupError, match=r"homer\.example"):
        sign_in_methods(place, "127.0.0.1")
    set_password(place, WORD)
    assert sign_in_methods(place, "127.0.0.1").names[-2:] == ("homer.example", "two.example")


def secrets(place: Home, text: str) -> None:
    secrets_file(place).parent.mkdir(exist_ok=True)
    secrets_file(place).write_text(text)


def test_providers_are_read_from_streamlits_secrets(place: Home) -> None:
    assert load_oidc(place) is None
    secrets(place, "[other]\nx = 1\n")
    assert load_oidc(place) is None
    secrets(place, f'{AUTH}{PROVIDER}[homer]\nusers = ["Ada@Example.org"]\n')
    assert load_oidc(place) == Oidc(("default",), frozenset({"ada@example.org"}))
    secrets(place, f"{AUTH}[auth.google]\n{PROVIDER}[auth.okta]\n{PROVIDER}")
    assert load_oidc(place) == Oidc(("google", "okta"), frozenset())
    assert sign_in_methods(place, "0.0.0.0").required


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("[auth", "cannot be read"),
        ("[auth]\n", "redirect_uri, cookie_secret"),
        (AUTH, "a provider: client_id"),
    ],
)
def test_secrets_that_are_not_whole_are_reported(place: Home, text: str, output: str) -> None:
    secrets(place, text)
    with pytest.raises(SetupError, match=output):
        sign_in_methods(place, "0.0.0.0")


def test_without_authlib_it_says_how(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets(place, AUTH + PROVIDER)
    monkeypatch.setattr("auth.signing_in.find_spec", lambda _name: None)
    with pytest.raises(SetupError, match="pip install"):
        sign_in_methods(place, "0.0.0.0")


def test_only_those_come_in_who_are_named() -> None:
    ada = {"is_logged_in": True, "provider": "default", "sub": "1"}
    ada |= {"email": "Ada@example.org", "email_verified": "True", "exp": time.time() + 60}
    everybody, few = (Oidc(("default",), frozenset(u)) for u in ((), ("ada@example.org",)))
    assert everybody.admits(ada)
    assert few.admits(ada)
    assert everybody.admits(ada | {"email": "eve@example.org"})
    for other in (
        {"email": "eve@example.org"},
        {"email_verified": False},
        {"email_verified": "false"},
        {"email_verified": None},
        {"exp": time.time() - 1},
        {"exp": "never"},
        {"email": None},
        {"is_logged_in": False},
        {"provider": "other"},
    ):
        assert not few.admits(ada | other)
    assert not everybody.admits({})
    assert Oidc(("default",), frozenset({"@default:1"})).admits(ada | {"email_verified": None})


def test_no_provider_can_name_somebody_else() -> None:
    ada = {"provider": "default", "sub": "1", "email": "Ada@example.org", "email_verified": True}
    assert verified_name(ada) == "ada@example.org"
    assert verified_name(ada | {"email": "key:reader"}) == "@default:1"
    kelvin = "\N{KELVIN SIGN}im@example.org"
    assert (
        verified_name(ada | {"email": kelvin})
        == check_user(kelvin)
        != check_user("kim@example.org")
    )
    unverified = ada | {"email_verified": False}
    for other in ({"provider": "key", "sub": "reader"}, {"provider": "", "sub": "ada@example.org"}):
        with pytest.raises(InputError):
            check_user(verified_name(unverified | other))


@given(st.text(max_size=50))
def test_one_is_led_only_within_the_app(wanted: str) -> None:
    found = safe_redirect(wanted)
    assert found.startswith("/")
    assert not found.startswith(("//", "/\\"))


@pytest.mark.parametrize(
    ("wanted", "led"),
    [
        ("/library?q=a b", "/library?q=a b"),
        ("https://evil.example", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("/sign-out", "/"),
        ("", "/"),
    ],
)
def test_where_one_is_led_after_signing_in(wanted: str, led: str) -> None:
    assert safe_redirect(wanted) == led


def test_the_cost_of_a_try_is_not_small() -> None:
    n, r, _p = door.SCRYPT_COST
    assert 128 * n * r >= 32 * 2**20
