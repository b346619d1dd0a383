"""Videos and images over HTTP without a browser: what is served, and what never is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from auth.signing_in import VALID_HOURS, is_signed, sign_path
from domain.media import Video
from domain.time import TimeSpan
from flows import video_file
from flows.removal import delete_video
from flows.video_file import cut_preview
from library.rights import give_right, rights_on, take_right
from perception.source import probe, video_id
from store.database import Store
from store.home import Home
from store.queries.percepts import add_blobs
from store.queries.videos import add_video
from tests.support.media import make_video
from ui import media
from ui.media import media_routes, shared_store

FILM = bytes(range(256)) * 16
KNOWN, CAPTIONS, GONE = hashlib.sha256(FILM).hexdigest()[:16], "b" * 16, "c" * 16
JPEG = b"\xff\xd8\xff\xe0 a frame"


def operator(_cookies: Mapping[str, str]) -> None:
    """Everybody is."""


@pytest.fixture
def page(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """The app's files over a library of three videos, one of which has its file."""
    recording = tmp_path / "film.mp4"
    recording.write_bytes(FILM)
    paths = {KNOWN: str(recording), CAPTIONS: None, GONE: str(tmp_path / "moved.mp4")}
    with store.begin() as session:
        for video, path in paths.items():
            add_video(session, Video(id=video, title=video, path=path, duration_ms=1), [], {})
    monkeypatch.setattr(media, "shared_store", lambda: store)
    with TestClient(
        Starlette(routes=media_routes(operator)), raise_server_exceptions=False
    ) as client:
        yield client


def test_a_video_is_served_whole_and_in_parts(page: TestClient) -> None:
    whole = page.get(sign_path(f"/video/{KNOWN}"))
    assert (whole.status_code, whole.content) == (200, FILM)
    assert whole.headers["content-type"] == "video/mp4"
    part = page.get(sign_path(f"/video/{KNOWN}"), headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, FILM[10:20])
    past = page.get(sign_path(f"/video/{KNOWN}"), headers={"Range": f"bytes={len(FILM)}-"})
    assert past.status_code == 416


@pytest.mark.parametrize(
    "name",
    [
        CAPTIONS,
        GONE,
        "d" * 16,
        "a" * 15,
        "a" * 17,
        "A" * 16,
        "film.mp4",
        "..",
        "%2e%2e%2ffilm.mp4",
        "%00",
        "a" * 15 + "%00",
        "' OR 1=1",
        "%F0%9F%98%80",
        "１" * 16,
    ],
)
def test_what_no_video_leads_to_is_not_served(page: TestClient, name: str) -> None:
    found = page.get(sign_path(f"/video/{name}"))
    assert found.status_code in (403, 404)
    assert FILM not in found.content


@pytest.mark.parametrize("name", ["clip.html", "clip.svg", "clip.mp4.xhtml", "clip.js", "clip"])
def test_a_file_is_served_as_its_container_says_and_nothing_in_it_runs(
    page: TestClient, store: Store, tmp_path: Path, name: str
) -> None:
    """A file that is called a page is none: it would run scripts as if they were the app's."""
    path = make_video(tmp_path / "made.mp4", seconds=1.0).replace(tmp_path / name)
    video = Video(id=video_id(path), title="clip", path=str(path), duration_ms=1)
    with store.begin() as session:
        add_video(session, video, [], {})
    found = page.get(sign_path(f"/video/{video.id}"))
    assert (found.status_code, found.headers["content-type"]) == (200, "video/mp4")
    assert "sandbox" in found.headers["content-security-policy"]
    assert found.headers["x-content-type-options"] == "nosniff"


def test_a_recording_is_served_in_parts_by_its_digest(page: TestClient, store: Store) -> None:
    path = f"/recording/{store.blobs.put(FILM)}"
    part = page.get(sign_path(path), headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, FILM[10:20])
    assert part.headers["content-type"] == "video/mp4"
    assert page.get(path).status_code == 403
    for name in ("0" * 64, "..%2f..%2fhomer.toml", "%00"):
        assert page.get(sign_path(f"/recording/{name}")).status_code in (403, 404)


def test_a_part_for_browsers_is_made_once_served_and_deleted_with_its_video(
    page: TestClient, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    film = make_video(tmp_path / "film.mkv", seconds=40.0, size=(64, 48), codec="libx265")
    video = Video(id=video_id(film), title="film", path=str(film), duration_ms=40_000)
    with store.begin() as session:
        add_video(session, video, [], {})
    part = cut_preview(store, video, 35_000)
    assert part is not None
    assert (part, part.span) == (cut_preview(store, video, 39_000), TimeSpan.of(30_000, 40_000))
    path = f"/preview/{video.id}-{part.span.start_ms}"
    served = page.get(sign_path(path))
    assert (served.status_code, served.headers["content-type"]) == (200, "video/mp4")
    (tmp_path / "part.mp4").write_bytes(served.content)
    assert probe(tmp_path / "part.mp4").duration_ms == pytest.approx(10_000, abs=100)
    assert page.get(path).status_code == 403
    for other in (f"{video.id}-30", f"{KNOWN}-30000", f"{video.id}-*", "..-0", "-"):
        assert page.get(sign_path(f"/preview/{other}")).status_code in (403, 404)
    monkeypatch.setattr(video_file, "MOST_PREVIEW_BYTES", part.path.stat().st_size)
    later = cut_preview(store, video, 0)
    assert later is not None
    assert later.path.exists()
    assert not part.path.exists()
    delete_video(store, video.id)
    assert not later.path.exists()


def test_an_image_is_served_by_its_digest_and_may_be_kept(page: TestClient, store: Store) -> None:
    sha = store.blobs.put(JPEG)
    found = page.get(sign_path(f"/image/{sha}"))
    assert (found.status_code, found.content) == (200, JPEG)
    assert found.headers["content-type"] == "image/jpeg"
    assert "sandbox" in found.headers["content-security-policy"]
    assert found.headers["cache-control"].startswith("private")
    assert int(found.headers["cache-control"].partition("=")[2]) > 86_400


@pytest.mark.parametrize("name", ["0" * 64, "0" * 63, "F" * 64, "..", "%2e%2e", "x" * 64])
def test_what_is_no_image_of_ours_is_not_served(page: TestClient, name: str) -> None:
    assert page.get(sign_path(f"/image/{name}")).status_code in (403, 404)


def test_a_damaged_image_is_not_shown(page: TestClient, store: Store) -> None:
    sha = store.blobs.put(JPEG)
    Path(store.blobs.path(sha)).write_bytes(b"something else")
    assert page.get(sign_path(f"/image/{sha}")).status_code == 404
    assert hashlib.sha256(JPEG).hexdigest() == sha


@pytest.mark.parametrize("place", [f"/video/{KNOWN}", f"/image/{'0' * 64}"])
def test_without_a_database_nothing_is_there_and_nothing_breaks(
    home: Home, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("HOMER_DATABASE_URL", "postgresql://me:secret@127.0.0.1:1/none")
    shared_store.cache_clear()
    with TestClient(
        Starlette(routes=media_routes(operator)), raise_server_exceptions=False
    ) as client:
        found = client.get(sign_path(place))
    assert found.status_code == 404
    assert "secret" not in found.text
    shared_store.cache_clear()


@pytest.mark.parametrize("way", ["post", "put", "delete"])
def test_files_are_only_ever_read(page: TestClient, way: str) -> None:
    assert getattr(page, way)(f"/video/{KNOWN}").status_code == 405


def test_a_link_without_its_signature_or_past_its_end_gives_nothing(page: TestClient) -> None:
    good = sign_path(f"/video/{KNOWN}")
    path, _, query = good.partition("?")
    until = query.removeprefix("until=").partition("&")[0]
    for bad in (
        path,
        good[:-1],
        good.replace(f"until={until}", f"until={int(until) + 1}"),
        good.replace(KNOWN, GONE),
        f"{path}?until=x&key=y",
        f"{path}?until={'9' * 40}&key=",
        sign_path(path, now=0.0),
    ):
        found = page.get(bad)
        assert found.status_code == 403
        assert FILM not in found.content


def test_a_link_is_the_same_for_hours_and_then_ends() -> None:
    start = 1_000_000 * VALID_HOURS * 3600.0
    link = sign_path("/video/x", start)
    assert sign_path("/video/x", start + VALID_HOURS * 3600 - 1) == link
    assert sign_path("/video/x", start + VALID_HOURS * 3600) != link
    until, key = link.partition("?until=")[2].split("&key=")
    assert is_signed("/video/x", until, key, start + VALID_HOURS * 3600)
    assert not is_signed("/video/x", until, key, start + 2 * VALID_HOURS * 3600)


def test_a_link_is_good_for_who_may_see_the_video_now(page: TestClient, store: Store) -> None:
    blobs = {video: store.blobs.put(JPEG + video.encode()) for video in (KNOWN, CAPTIONS)}
    with store.begin() as session:
        for video, sha in blobs.items():
            add_blobs(session, video, {sha: 1})
    give_right(store, "ana@example.org", video=KNOWN)
    rights_on(store)
    users = Starlette(routes=media_routes(lambda cookies: cookies["user"]))
    own = [f"/video/{KNOWN}", *(f"/{kind}/{blobs[KNOWN]}" for kind in ("image", "recording"))]
    others = [f"/{kind}/{blobs[CAPTIONS]}" for kind in ("image", "recording")]

    def served(user: str, paths: list[str]) -> set[int]:
        with TestClient(users, cookies={"user": user}) as client:
            return {client.get(sign_path(path)).status_code for path in paths}

    assert served("ana@example.org", own) == {200}
    assert served("ana@example.org", others) == {404}
    assert served("bob@example.org", own + others) == {404}
    take_right(store, "ana@example.org", video=KNOWN)
    assert served("ana@example.org", own) == {404}
    assert page.get(sign_path(own[0])).status_code == 200
