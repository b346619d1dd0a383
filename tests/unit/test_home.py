"""Where things lie, and which urls are taken and shown."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import DatabaseError
from store.driver import describe_url, libpq_url, parse_url
from store.home import Home
from store.postmaster import LONGEST, socket_folder


def test_the_environment_names_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOMER_HOME", str(tmp_path / "here"))
    monkeypatch.delenv("HOMER_WEIGHTS", raising=False)
    home = Home.default()
    places = (home.postgres, home.blobs, home.weights, home.logs, home.run, home.config)
    assert all(place.parent == tmp_path / "here" for place in places)
    assert not (tmp_path / "here").exists(), "naming a place must not make it"


def test_platform_names_the_home_otherwise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HOMER_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Home.default().root.name == "homer"
    assert Home.default().root.is_relative_to(tmp_path)


def test_home_is_absolute_from_any_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert Home(Path("data")).root == tmp_path / "data"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Home(Path("~/data")).root == tmp_path / "data"


def test_a_made_home_is_private(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").make().make()
    assert all(folder.stat().st_mode & 0o077 == 0 for folder in (home.root, home.run, home.logs))


@given(st.text("ab é,'/%\"\n", min_size=1, max_size=150).filter(lambda s: "\0" not in s))
def test_a_socket_always_fits_and_never_needs_quotes(name: str) -> None:
    folder = str(socket_folder(Home(Path("/nowhere") / name.strip("/"))))
    assert len(f"{folder}/.s.PGSQL.5432.lock".encode()) <= LONGEST
    assert not set(folder) & set(" ,'\"%\né")


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_urls_of_postgres_become_psycopgs(scheme: str) -> None:
    url = parse_url(f"{scheme}://me:p%40ss@db:5433/films?sslmode=require")
    assert url.drivername == "postgresql+psycopg"
    assert libpq_url(url) == "postgresql://me:p%40ss@db:5433/films?sslmode=require"
    assert describe_url(url) == "database films on db:5433"


@pytest.mark.parametrize(
    "text",
    ["", "films", "sqlite:///x", "postgresql://db", "postgresql+asyncpg://db/x", "://", "\0"],
)
def test_other_urls_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(DatabaseError, match="postgresql://USER@HOST:PORT/DATABASE"):
        parse_url(text)


@given(st.text(max_size=40))
def test_no_text_breaks_the_reading_of_urls(text: str) -> None:
    with suppress(DatabaseError):
        assert describe_url(parse_url(text))
