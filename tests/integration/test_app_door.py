"""The real app over HTTP: on this machine for whoever is here, beyond it only for who signs in."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import psutil
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from typer.testing import CliRunner
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from auth.signing_in import VARIABLE, password_file, password_matches, secrets_file, stored_hash
from cli.main import app as command
from domain.errors import SetupError
from domain.media import Video
from library.rights import rights_off, rights_on
from services.supervisor import AppServer
from store.database import open_store
from store.home import Home
from store.queries.videos import add_video
from tests.support.openid_provider import Provider

ROOT = Path(__file__).parents[2]
WORD = "correct horse"
VIDEO = "a" * 16
FILM = b"the film itself" * 100
EVERYWHERE = "0.0.0.0"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as found:
        found.delenv(VARIABLE, raising=False)
        found.setenv("PYTHONPATH", str(ROOT))
        yield found


@pytest.fixture(scope="module")
def place(
    tmp_path_factory: pytest.TempPathFactory,
    make_database: Callable[[], str],
    patch: pytest.MonkeyPatch,
) -> Iterator[Home]:
    """A data directory with a video, whose app may listen everywhere."""
    folder = tmp_path_factory.mktemp("door")
    home, url = Home(folder / "home").make(), make_database()
    patch.setenv("HOMER_HOME", str(home.root))
    patch.setenv("HOMER_DATABASE_URL", url)
    recording = folder / "film.mp4"
    recording.write_bytes(FILM)
    with open_store(home, url) as store, store.begin() as session:
        add_video(session, Video(id=VIDEO, title="t", path=str(recording), duration_ms=1), [], {})
    yield home
    AppServer(home).stop()


@pytest.fixture(scope="module")
def address(place: Home, patch: pytest.MonkeyPatch) -> str:
    """The app behind a password that the environment gave."""
    patch.setenv(VARIABLE, WORD)
    return AppServer(place, 0, EVERYWHERE).start()


@pytest.fixture
def enforced(place: Home) -> Iterator[None]:
    """Rights limit what users see."""
    with open_store(place) as store:
        rights_on(store)
        yield
        rights_off(store)


@pytest.fixture
def browser(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, trust_env=False) as client:
        yield client


@pytest.fixture
def inside(browser: httpx.Client) -> httpx.Client:
    found = browser.post("/sign-in", data={"password": WORD, "next": "/library"})
    assert (found.status_code, found.headers["location"]) == (303, "/library")
    return browser


def stream(address: str, client: httpx.Client, origin: str = "") -> None:
    """Opens the event stream as Streamlit's page does."""
    cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    reported = {"Cookie": cookies} | ({"Origin": origin} if origin else {})
    url = address.replace("http", "ws") + "/_stcore/stream"
    with connect(url, additional_headers=reported, proxy=None) as opened:
        opened.ping().wait(10)


def shown(address: str, client: httpx.Client) -> str:
    """What a page of the library draws for a browser."""
    cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    url = address.replace("http", "ws") + "/_stcore/stream"
    opened = connect(url, additional_headers={"Cookie": cookies}, proxy=None, max_size=None)
    with closing(opened):
        asked = BackMsg()
        asked.rerun_script.page_name = "library"
        opened.send(asked.SerializeToString())
        drawn: list[ForwardMsg] = []
        while not drawn or drawn[-1].WhichOneof("type") != "script_finished":
            drawn.append(ForwardMsg.FromString(opened.recv(60, decode=False)))
    return "".join(map(str, drawn))


@pytest.mark.parametrize(
    ("way", "path"),
    [
        ("GET", "/library"),
        ("GET", "/index.html"),
        ("GET", "/_stcore/host-config"),
        ("GET", "/_stcore/metrics"),
        ("GET", f"/video/{VIDEO}"),
        ("GET", f"/video/{VIDEO}?until=99999999999&key=x"),
        ("GET", f"/image/{'0' * 64}"),
        ("GET", f"/recording/{'0' * 64}"),
        ("GET", "/media/0123.png"),
        ("GET", "/static/js/index.js"),
        ("GET", "//video/x"),
        ("PUT", "/_stcore/upload_file/x/y"),
        ("POST", "/_stcore/agent"),
    ],
)
def test_nobody_has_anything_without_signing_in(browser: httpx.Client, way: str, path: str) -> None:
    found = browser.request(way, path)
    assert found.status_code == 401, found.text
    assert FILM[:15] not in found.content
    assert "Streamlit" not in found.text


def test_a_page_is_not_shown_but_the_sign_in_page(browser: httpx.Client) -> None:
    found = browser.get("/library?q=x", headers={"Accept": "text/html"}, follow_redirects=True)
    assert found.url.path == "/sign-in"
    assert "Sign in to Homer" in found.text
    assert 'value="/library?q=x"' in found.text
    assert "Streamlit" not in found.text


def test_no_event_stream_without_signing_in(address: str, browser: httpx.Client) -> None:
    with pytest.raises(InvalidStatus) as refused:
        stream(address, browser)
    assert refused.value.response.status_code == 403


def test_who_signs_in_has_pages_files_and_the_stream(address: str, inside: httpx.Client) -> None:
    assert "Streamlit" in inside.get("/library").text
    assert inside.get(f"/video/{VIDEO}").status_code == 403
    stream(address, inside)
    stream(address, inside, address)


def test_the_password_makes_an_operator(address: str, inside: httpx.Client, enforced: None) -> None:
    drawn = shown(address, inside)
    assert f"video_{VIDEO}" in drawn
    assert "There is no video that you may see" not in drawn


def test_no_page_of_another_site_has_the_stream(address: str, inside: httpx.Client) -> None:
    for origin in ("https://evil.example", "http://localhost", "null"):
        with pytest.raises(InvalidStatus):
            stream(address, inside, origin)


def test_who_signs_out_has_nothing_any_more(address: str, inside: httpx.Client) -> None:
    cookies = "; ".join(f"{name}={value}" for name, value in inside.cookies.items())
    url = address.replace("http", "ws") + "/_stcore/stream"
    with connect(url, additional_headers={"Cookie": cookies}, proxy=None) as opened:
        assert inside.post("/sign-out").status_code == 303
        opened.send(b"anything")
        with pytest.raises(ConnectionClosed):
            opened.recv(10)
    assert inside.get("/library", headers={"Cookie": cookies}).status_code == 401


def test_the_password_is_nowhere_but_as_a_hash(place: Home, address: str) -> None:
    assert stat.S_IMODE(password_file(place).stat().st_mode) == 0o600
    held = [path for path in place.root.rglob("*") if path.is_file()]
    assert [path for path in held if WORD.encode() in path.read_bytes()] == []
    running = AppServer(place).running()
    assert running is not None
    assert VARIABLE not in psutil.Process(running.pid).environ()
    assert VARIABLE not in os.environ


def test_nothing_is_asked_of_anybody_elsewhere(place: Home, address: str) -> None:
    assert "external IP" not in (place.logs / "app.log").read_text()


def test_one_that_runs_is_not_taken_for_one_elsewhere(place: Home, address: str) -> None:
    with pytest.raises(SetupError, match="runs already and listens on 0"):
        AppServer(place).start()
    assert AppServer(place, 0, EVERYWHERE).start() == address


def test_it_does_not_begin_open_to_everybody(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path).make()
    env = {**os.environ, "HOMER_HOME": str(home.root)}
    begun = [sys.executable, "-m", "ui", "--host", EVERYWHERE, "--port", "0"]
    done = subprocess.run(begun, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert done.stderr.startswith("homer: the app would be open to everybody")
    assert "homer password" in done.stderr
    reported = CliRunner().invoke(
        command, ["up", "--address", EVERYWHERE], env={"HOMER_HOME": str(home.root)}
    )
    assert reported.exit_code == 3
    assert "homer password" in reported.stderr
    assert list(home.run.iterdir()) == []


def test_the_command_keeps_a_password(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")

    def word(*arguments: str, stdin: str = "") -> tuple[int, str]:
        env = {"HOMER_HOME": str(home.root)}
        done = CliRunner().invoke(command, ["password", *arguments], input=stdin, env=env)
        return done.exit_code, done.output

    code, reported = word(stdin=f"{WORD}\n{WORD}\n")
    assert code == 0
    assert WORD not in reported
    assert password_matches(stored_hash(home), WORD)
    (tmp_path / "word").write_text("another horse\n")
    assert word("--file", str(tmp_path / "word"))[0] == 0
    assert password_matches(stored_hash(home), "another horse")
    assert "no password any more" in word("--remove")[1]
    assert "was no password" in word("--remove")[1]
    assert stored_hash(home) is None


@pytest.fixture(scope="module")
def open_address(
    tmp_path_factory: pytest.TempPathFactory, patch: pytest.MonkeyPatch, place: Home
) -> Iterator[str]:
    """The app of this machine only, which nobody has to sign in to."""
    home = Home(tmp_path_factory.mktemp("open") / "home").make()
    yield AppServer(home, 0).start()
    AppServer(home).stop()


def test_on_this_machine_nobody_signs_in(open_address: str) -> None:
    with httpx.Client(base_url=open_address) as client:
        assert "Streamlit" in client.get("/library").text
        assert client.get("/sign-in", follow_redirects=False).status_code in (200, 404)
        assert "Sign in to Homer" not in client.get("/sign-in").text
        stream(open_address, client)
        stream(open_address, client, open_address)


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "192.0.2.7", ""]
)
def test_a_name_that_was_bent_to_this_machine_is_refused(open_address: str, host: str) -> None:
    """As when a page of another site has its own name lead to 127.0.0.1."""
    with httpx.Client(base_url=open_address) as client:
        for path in ("/", f"/video/{VIDEO}", "/_stcore/health"):
            assert client.get(path, headers={"Host": host}).status_code == 400
    port = int(open_address.rpartition(":")[2])
    with (
        pytest.raises(InvalidStatus) as refused,
        socket.create_connection(("127.0.0.1", port)) as raw,
    ):
        connect(f"ws://{host or 'x'}:{port}/_stcore/stream", sock=raw, proxy=None)
    assert refused.value.response.status_code in (400, 403)


def test_no_page_of_another_site_has_the_open_stream(open_address: str) -> None:
    with httpx.Client() as client, pytest.raises(InvalidStatus):
        stream(open_address, client, "https://evil.example")


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider() as running:
        yield running


@pytest.fixture(scope="module")
def oidc(
    tmp_path_factory: pytest.TempPathFactory,
    patch: pytest.MonkeyPatch,
    place: Home,
    provider: Provider,
) -> Iterator[str]:
    """The app behind a provider, whose Ada may come in and nobody else."""
    home = Home(tmp_path_factory.mktemp("oidc") / "home").make()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    secrets_file(home).parent.mkdir()
    reported = provider.secrets(f"http://127.0.0.1:{port}", '"ada@example.org"')
    secrets_file(home).write_text(reported)
    yield AppServer(home, port, EVERYWHERE).start()
    AppServer(home).stop()


VERIFIED = {"email_verified": True}


def signed_in(
    address: str, provider: Provider, email: str, claim: dict[str, bool] = VERIFIED
) -> httpx.Client:
    provider.user = {"sub": email, "email": email, **claim}
    client = httpx.Client(base_url=address, follow_redirects=True, headers={"Accept": "text/html"})
    page = client.get("/library")
    assert 'href="/sign-in/default">Sign in with your account' in page.text
    assert "Password" not in page.text
    client.get("/sign-in/default")
    return client


def test_whom_a_provider_knows_and_the_list_names_comes_in(oidc: str, provider: Provider) -> None:
    with closing(signed_in(oidc, provider, "ada@example.org")) as client:
        assert "Streamlit" in client.get("/library").text
        stream(oidc, client)
        stream(oidc, client, oidc)
        kept = dict(client.cookies)
        assert client.post("/sign-out").url.path == "/sign-in"
        assert client.get("/_stcore/host-config").url.path == "/sign-in"
        client.cookies.update(kept)
        assert client.get("/_stcore/host-config").url.path == "/sign-in", "a copy is worth nothing"


def test_neither_session_nor_what_provider_said_counts_alone(oidc: str, provider: Provider) -> None:
    with closing(signed_in(oidc, provider, "ada@example.org")) as client:
        cookies = dict(client.cookies)
    (own,) = [name for name in cookies if name.startswith("homer_")]
    assert httpx.get(f"{oidc}/library", cookies=cookies).status_code == 200
    for name in (own, "_streamlit_user"):
        rest = {one: value for one, value in cookies.items() if one != name}
        assert httpx.get(f"{oidc}/library", cookies=rest).status_code == 401


@pytest.mark.parametrize("verified", [False, None])
def test_an_unverified_address_is_no(oidc: str, provider: Provider, verified: bool | None) -> None:
    claim = {} if verified is None else {"email_verified": verified}
    with closing(signed_in(oidc, provider, "ada@example.org", claim)) as client:
        assert client.get("/_stcore/host-config").url.path == "/sign-in"


def test_who_has_no_right_sees_nothing(oidc: str, provider: Provider, enforced: None) -> None:
    with closing(signed_in(oidc, provider, "ada@example.org")) as client:
        drawn = shown(oidc, client)
        much = client.put("/_stcore/upload_file/x/y", content=bytes(33 * 1024 * 1024))
    assert "There is no video that you may see" in drawn
    assert VIDEO not in drawn
    assert (much.status_code, much.text) == (413, "too much at a time")


def test_whom_the_list_does_not_name_stays_outside(oidc: str, provider: Provider) -> None:
    with closing(signed_in(oidc, provider, "eve@example.org")) as client:
        assert client.get("/_stcore/host-config").url.path == "/sign-in"
        with pytest.raises(InvalidStatus):
            stream(oidc, client)


def test_a_made_up_cookie_is_nobodys(oidc: str) -> None:
    for value in ("x", '{"is_logged_in": true}', "a.b.c"):
        reported = {"Cookie": f"_streamlit_user={value}"}
        assert httpx.get(f"{oidc}/library", headers=reported).status_code == 401


def test_there_is_no_password_where_only_a_provider_is_named(oidc: str) -> None:
    assert httpx.post(f"{oidc}/sign-in", data={"password": ""}).status_code == 401
    assert httpx.get(f"{oidc}/sign-in/other").status_code == 404
