"""Links to one answer or moment: who has one sees that and nothing else, until it ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import func, update
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from auth.middleware import RequireSignIn, SessionStore
from auth.signing_in import SignInMethods, link_key, sign_until
from domain.asking import Question
from domain.errors import InputError
from domain.rights import SharedLink
from domain.time import TimeSpan
from flows.removal import delete_video_rows
from library.sharing import revoke_link, share_answer, share_moment, shared_links
from store.database import Store
from store.queries.rights import audit_entries
from store.tables.library import SharedLinkRow
from store.tables.schema import KeyframeRow, VideoRow
from tests.support.app_pages import EVIL, app_over, open_page, press
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.picture_cards import Card, jpeg
from tests.support.remembered import recording
from tests.support.runs import ask
from ui.media import media_routes
from ui.sharing import GONE, shared_routes

QUESTION = "Who opens the gate?"
GATE = TimeSpan.of(4_000, 5_000)


@pytest.fixture
def party(store: Store) -> Store:
    remember_party(store)
    recording(store, PARTY, [4.0])
    blob = store.blobs.put(jpeg(Card("red", "CUP", "circle")))
    with store.begin() as session:
        session.execute(update(KeyframeRow).values(blob=blob))
    return store


@pytest.fixture
def answer(party: Store) -> SharedLink:
    asked = ask(party, WordToolbox(), Question(text=QUESTION, videos=(PARTY,)))
    return share_answer(party, asked.trajectory_id, 7)


@pytest.fixture
def stranger(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A client that is not signed in to an app that requires it."""
    monkeypatch.setattr("ui.sharing.shared_store", lambda: store)
    methods = SignInMethods(password=True, oidc=None, names=())
    required = Middleware(RequireSignIn, session_store=SessionStore(store.home, methods))
    routes = [*shared_routes(), *media_routes(lambda _cookies: None)]
    with TestClient(Starlette(routes=routes, middleware=[required])) as client:
        yield client


def signed_path(link: SharedLink) -> str:
    parts = urlsplit(link.url)
    return f"{parts.path}?{parts.query}"


def deeds(store: Store) -> list[tuple[str, str, str]]:
    with store.begin() as session:
        return [(one.who, one.deed, one.subject) for one in audit_entries(session)]


def test_a_stranger_sees_the_answer(store: Store, answer: SharedLink, stranger: TestClient) -> None:
    page = stranger.get(signed_path(answer))
    assert page.status_code == 200
    assert QUESTION in page.text
    assert "Ann opens the wooden gate" in page.text
    assert 'src="data:image/jpeg;base64,' in page.text
    # Neither the rest of the memory nor the rest of the app.
    assert "piano" not in page.text
    assert "href" not in page.text
    assert stranger.get("/image/" + "0" * 64).status_code == 401


def test_the_page_speaks_the_language_of_the_strangers_browser(
    store: Store, answer: SharedLink, stranger: TestClient
) -> None:
    path, german = signed_path(answer), {"Accept-Language": "de"}
    page = stranger.get(path, headers=german).text
    assert '<html lang="de">' in page
    assert "Dieser Link gilt bis " in page
    assert QUESTION in page
    assert stranger.get(answer.path, headers=german).text.startswith("Dieser Link ist nicht gültig")
    assert '<html lang="en">' in stranger.get(path).text


def test_nobody_stores_the_page(store: Store, answer: SharedLink, stranger: TestClient) -> None:
    headers = stranger.get(signed_path(answer)).headers
    assert (headers["cache-control"], headers["referrer-policy"]) == ("no-store", "no-referrer")
    assert "default-src 'none'" in headers["content-security-policy"]


def test_a_stranger_sees_the_moment_and_no_other(party: Store, stranger: TestClient) -> None:
    page = stranger.get(signed_path(share_moment(party, PARTY, GATE, 1)))
    assert "Ann opens the wooden gate of the garden" in page.text
    assert 'src="data:image/jpeg;base64,' in page.text
    assert "The sky is clear" not in page.text
    with pytest.raises(InputError, match="10 minutes"):
        share_moment(party, PARTY, TimeSpan.of(0, 601_000), 1)
    with pytest.raises(InputError, match="was not watched at"):
        share_moment(party, PARTY, TimeSpan.of(10**9, 10**9), 1)


def test_an_altered_link_is_invalid(store: Store, answer: SharedLink, stranger: TestClient) -> None:
    other = share_moment(store, PARTY, GATE, 1)
    later = answer.until + 86_400
    good = signed_path(answer)
    key = parse_qs(urlsplit(good).query)["key"][0]
    altered = [
        *(answer.path, f"{answer.path}?until={answer.until}", f"{good}0", good[:-1]),
        *(f"{answer.path}?until={later}&key={key}", good.replace(answer.id, other.id)),
        sign_until(answer.path, answer.until, b"the key of another library, 32 b"),
        # Signed well, but not what was shared.
        sign_until(answer.path, later, link_key(store.home)),
        sign_until("/shared/" + "0" * 16, answer.until, link_key(store.home)),
        *(f"{answer.path}?until=x&key=y", f"{answer.path}?until={answer.until}&key=%ff"),
    ]
    for path in altered:
        refused = stranger.get(path)
        assert (refused.status_code, refused.text) == (404, GONE), path
    assert not [one for one in deeds(store) if one[1] == "opened a link"]


def test_a_link_ends_with_its_time(store: Store, answer: SharedLink, stranger: TestClient) -> None:
    path = signed_path(answer)
    with store.begin() as session:
        past = func.now() - timedelta(seconds=1)
        session.execute(update(SharedLinkRow).values(expires_at=past))
    assert stranger.get(path).status_code == 404
    expired = sign_until(answer.path, 1_700_000_000, link_key(store.home))
    assert stranger.get(expired).status_code == 404


def test_a_link_ends_when_it_is_revoked_and_all_of_it_is_on_record(
    store: Store, answer: SharedLink, stranger: TestClient
) -> None:
    assert stranger.get(signed_path(answer)).status_code == 200
    revoke_link(store, answer.id)
    assert stranger.get(signed_path(answer)).status_code == 404
    revoked, opened, shared = deeds(store)[:3]
    assert [one[1] for one in (shared, opened, revoked)] == [
        *("shared", "opened a link", "revoked a link")
    ]
    assert {one[2] for one in (shared, opened, revoked)} == {answer.trajectory}
    assert opened[0] == f"link {answer.id} (testclient)"


def test_a_link_ends_with_its_thing(store: Store, answer: SharedLink, stranger: TestClient) -> None:
    moment = share_moment(store, PARTY, GATE, 1)
    delete_video_rows(store, PARTY)
    for link in (answer, moment):
        assert stranger.get(signed_path(link)).status_code == 404
    assert shared_links(store) == []


def test_words_from_outside_are_escaped(party: Store, stranger: TestClient) -> None:
    with party.begin() as session:
        session.execute(update(VideoRow).values(title=EVIL))
    asked = ask(party, WordToolbox(), Question(text=f"{EVIL} gate?", videos=(PARTY,)))
    for link in (share_answer(party, asked.trajectory_id, 1), share_moment(party, PARTY, GATE, 1)):
        page = stranger.get(signed_path(link)).text
        assert EVIL not in page
        assert not re.search(r"<(script|img(?! alt))", page)


def test_the_key_of_links_is_its_owners_alone_and_leaves_with_no_library(store: Store) -> None:
    key = link_key(store.home)
    assert link_key(store.home) == key
    assert (store.home.root / "links.key").stat().st_mode & 0o077 == 0


def test_the_page_of_a_search_makes_and_revokes_links(
    store: Store, answer: SharedLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    revoke_link(store, answer.id)
    with app_over(store, monkeypatch, WordToolbox):
        page = press(open_page("trajectory", trajectory=answer.trajectory), "Make a link")
        (link,) = [code.value for code in page.code if "/shared/" in code.value]
        (made,) = shared_links(store, answer.trajectory)
        assert signed_path(made) in link
        page = press(page, "Revoke")
    assert not [code for code in page.code if "/shared/" in code.value]
    assert shared_links(store) == []


def test_a_moment_is_shared_beside_it_and_revoked_in_the_library(
    store: Store, answer: SharedLink, stranger: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    revoke_link(store, answer.id)
    with app_over(store, monkeypatch, WordToolbox):
        page = press(open_page("trajectory", trajectory=answer.trajectory), "Share")
        (link,) = [code.value for code in page.code if "/shared/" in code.value]
        path = "/shared/" + link.partition("/shared/")[2]
        assert "Ann opens the wooden gate" in stranger.get(path).text
        press(open_page("library"), "Revoke")
    assert stranger.get(path).status_code == 404
