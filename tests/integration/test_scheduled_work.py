"""What schedules do beside watching a folder: fetch, back up, check, learn, and what they tell."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from domain.errors import Busy, InputError, SetupError
from domain.settings import RetainSettings, Tier
from domain.skills import JudgedTrajectory
from evals import nightly
from flows.build import Built
from flows.schedules import fetching, work
from flows.schedules.fetching import FetchArchive, fetch_all, video_fetcher
from flows.schedules.kinds import (
    BackupOptions,
    BuildOptions,
    EvaluateOptions,
    FetchOptions,
    LearnOptions,
)
from flows.schedules.work import BACKUP_NAME_FORMAT, delete_old_backups
from flows.watching import SilentListener
from flows.workspace import Workspace
from library.evaluations import evaluation_runs
from library.videos import all_videos
from skills.learn import judge
from store.backup import check_archive
from store.database import Store
from store.queries.videos import video_titles
from store.tables.schema import EdgeRow, SegmentRow, TakenRow, VideoRow
from tests.support.asking import WordToolbox, remember_party
from tests.support.caption_evaluations import houses
from tests.support.library import Quiet
from tests.support.media import make_video

DAY = datetime(2031, 5, 7, 3, 0, 0)


@pytest.fixture
def workspace(store: Store) -> Workspace:
    toolbox: Any = WordToolbox()
    return Workspace(store.home, store, toolbox.profile, toolbox, background=True)


def test_the_latest_back_ups_stay_and_only_ours_go(workspace: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    options = BackupOptions(folder=folder, keep=2)
    for day in range(3):
        output = work.backup(workspace, options, DAY + timedelta(days=day))
    (folder / "holiday.homer").write_text("mine")
    (folder / "homer-20310507-030000.homer.txt").write_text("mine")
    assert "1 old ones removed" in output.text
    ours = sorted(folder.glob("homer-????????-??????.homer"))
    assert [path.name for path in ours] == [
        "homer-20310508-030000.homer",
        "homer-20310509-030000.homer",
    ]
    assert check_archive(ours[-1], Quiet()).rows("videos") == 0
    delete_old_backups(folder, 1)
    assert len(list(folder.iterdir())) == 3


def test_a_back_up_that_fails_removes_none(workspace: Workspace, tmp_path: Path) -> None:
    old = [tmp_path / (DAY - timedelta(days=day)).strftime(BACKUP_NAME_FORMAT) for day in range(3)]
    for path in old:
        path.write_text("a back-up")
    with pytest.raises(InputError):
        work.backup(workspace, BackupOptions(folder=tmp_path, keep=1), DAY)
    assert all(path.exists() for path in old)


def test_a_back_up_lies_in_the_data_directory_unless_told(workspace: Workspace) -> None:
    work.backup(workspace, BackupOptions(), DAY)
    assert [path.name for path in (workspace.home.root / "backups").iterdir()] == [
        DAY.strftime(BACKUP_NAME_FORMAT)
    ]


def test_the_check_tells_which_video_does_not_hold_together(workspace: Workspace) -> None:
    remember_party(workspace.store)
    with workspace.store.begin() as session:
        session.execute(update(VideoRow).values(title="secret title"))
    before = work.check(workspace)
    assert before.text.endswith("checked: consistent") or "findings" in before.text
    with workspace.store.begin() as session:
        session.query(EdgeRow).delete()
        session.query(SegmentRow).delete()
    output = work.check(workspace)
    assert not output.ok
    assert "findings; `homer check VIDEO` shows them" in output.text
    with workspace.store.begin() as session:
        known = video_titles(session)
    assert "secret" not in output.text
    assert any(output.text.startswith(f"{one}: ") for one in known)


def test_what_is_missing_is_built(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    remember_party(workspace.store)
    with workspace.store.begin() as session:
        session.execute(update(VideoRow).values(state="done"))
        videos = len(video_titles(session))
    options = BuildOptions(strategies=("worldmm",))
    first = work.build(workspace, options)
    assert first.ok
    assert re.fullmatch(r"[1-9]\d* clips? built for worldmm", first.text)
    assert work.build(workspace, options).text == "0 clips built for worldmm"
    with pytest.raises(InputError, match="plain-rag builds no memory of its own"):
        work.build(workspace, BuildOptions(strategies=("plain-rag",)))

    def busy(*_: object) -> Built:
        raise Busy("another homer builds it")

    monkeypatch.setattr(work, "build_memory", busy)
    left = work.build(workspace, options)
    assert not left.ok
    assert left.text.count("another homer builds it") == videos


def test_nightly_work_stands_back_between_its_steps(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember_party(workspace.store)
    with workspace.store.begin() as session:
        session.execute(update(VideoRow).values(state="done"))
    tiers = RetainSettings(tiers=(Tier(after_days=1, keep="text"),))
    settings = workspace.settings.model_copy(update={"retain": tiers})
    workspace = replace(
        workspace, profile=workspace.profile.model_copy(update={"settings": settings})
    )
    stood: list[float] = []

    def give_way(_workspace: Workspace, _wait: object = None, most_s: float = math.inf) -> float:
        stood.append(most_s)
        return 0.0

    monkeypatch.setattr(Workspace, "give_way", give_way)
    work.check(workspace)
    videos = len(stood)
    assert videos == len(all_videos(workspace.store).items)
    work.retain(workspace, datetime.now(UTC) + timedelta(days=9))
    assert len(stood) == 2 * videos
    work.learn(workspace, LearnOptions(answers=1))
    work.backup(workspace, BackupOptions(folder=tmp_path / "kept"), DAY)
    assert stood[2 * videos :] == [math.inf, work.PATIENCE_S]


def test_back_up_stands_back_so_long(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "GIVE_WAY_POLL_S", 0.0)
    waited: list[float] = []
    with workspace.store.turns.person():
        polite = work.YieldingProgress(workspace, waited.append)
        for _ in range(3):
            polite.step()
    assert sum(waited) == work.PATIENCE_S


def test_learning_waits_for_enough_judged_answers(workspace: Workspace) -> None:
    from domain.asking import Question
    from graphs.runner import Runner
    from tests.support.asking import PARTY

    remember_party(workspace.store)
    options = LearnOptions(answers=1)
    assert work.learn(workspace, options).text == "0 of 1 judged answers are there"
    with Runner(workspace.store, workspace.toolbox) as runner:
        asked = runner.ask(Question(text="Who opens the gate?", videos=(PARTY,)))
    judge(
        workspace.store,
        JudgedTrajectory(trajectory=asked.trajectory_id, question_type="who", right=True),
    )
    assert work.learn(workspace, options).text == "learned from 1 answer: 0 skills, 0 banned"
    assert work.learn(workspace, options).text == "0 of 1 judged answers are there"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder that a server on this machine gives out, and its address."""
    folder = tmp_path / "site"
    folder.mkdir()

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_args: object) -> None:
            """Is quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_what_is_new_in_a_feed_is_fetched_once(
    workspace: Workspace, site: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("yt_dlp")
    monkeypatch.setenv("no_proxy", "*")
    folder, url = site
    talk = make_video(folder / "talk.mp4", seconds=1.0)
    item = '<item><title>{0}</title><link>{1}/{0}.mp4</link><enclosure url="{1}/{0}.mp4"/></item>'
    feed = '<?xml version="1.0"?><rss version="2.0"><channel><title>f</title>{}</channel></rss>'
    late = make_video(folder / "late.mp4", seconds=1.5)
    listed = "".join(item.format(name, url) for name in ("lost", "talk", "late"))
    (folder / "feed.xml").write_text(feed.format(listed))
    into = tmp_path / "fetched"

    def fetch() -> fetching.FetchResult:
        urls = [f"{url}/feed.xml", f"{url}/gone.mp4"]
        return fetch_all(workspace.store, urls, into, 10, video_fetcher())

    first = fetch()
    assert [path.read_bytes() for path in first.files] == [talk.read_bytes(), late.read_bytes()]
    assert first.files[0].parent == into
    lost, gone = first.faults
    assert lost.startswith(f"{url}/lost.mp4 cannot be fetched: ")
    assert gone.startswith(f"{url}/gone.mp4 cannot be fetched: ")
    assert "404" in lost
    assert FetchArchive(workspace.store).already_fetched(into.iterdir()) == set(first.files)
    assert fetch() == fetching.FetchResult((), first.faults)
    first.files[0].unlink()
    assert fetch().files == ()


def test_a_fault_keeps_the_keys_of_an_address_to_itself() -> None:
    faults = fetching._Faults("https://a.example/list?key=abcdefgh1234")
    faults.error("ERROR: no list at key=abcdefgh1234")
    faults.look({"url": "https://b.example/one.mp4?token=zyxwvut98765", "_type": "url"})
    faults.error("ERROR: 404 of token=zyxwvut98765")
    assert [one.partition(":")[0] for one in faults.told] == ["https"] * 2
    assert "https://b.example/one.mp4 cannot be fetched: 404 of" in faults.told[1]
    assert not any("abcdefgh" in one or "zyxwvut" in one for one in faults.told)


def test_what_an_earlier_run_fetched_and_did_not_watch_is_watched_in_the_users_folder_too(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = tmp_path / "mine"
    into.mkdir()
    (into / "holiday.mp4").write_text("not fetched")
    (into / "talk.mp4").write_text("fetched before the process was killed")
    FetchArchive(workspace.store).got(into / "talk.mp4")
    monkeypatch.setattr(work, "video_fetcher", lambda: lambda *_: fetching.FetchResult())
    options = FetchOptions(urls=("https://a.example/1",), right=True, folder=into)
    output = work.fetch(workspace, options, SilentListener())
    assert "talk.mp4: not a video" in output.text
    assert "holiday" not in output.text


def test_fetching_without_the_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.keys_and_packages.find_spec", lambda _name: None)
    with pytest.raises(SetupError, match=r"fetching needs yt-dlp: .*pip install .* yt-dlp"):
        video_fetcher()


def test_addresses_are_read_from_a_file_and_what_comes_is_watched(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = tmp_path / "urls.txt"
    named.write_text("# talks\nhttps://a.example/1\n\n  https://a.example/2\n")
    asked: list[str] = []

    def get(
        url: str, folder: Path, most: int, known: FetchArchive, _: object
    ) -> fetching.FetchResult:
        asked.append(url)
        assert most == 3
        if url in known:
            return fetching.FetchResult()
        known.add(url)
        (folder / "bad.mp4").write_text("no video")
        return fetching.FetchResult((folder / "bad.mp4",))

    monkeypatch.setattr(work, "video_fetcher", lambda: get)
    options = FetchOptions(file=named, right=True, most=3, urls=("https://b.example/0",))
    output = work.fetch(workspace, options, SilentListener())
    assert asked == ["https://b.example/0", "https://a.example/1", "https://a.example/2"]
    assert not output.ok
    assert output.text.startswith("3 fetched; 0 watched")
    assert "bad.mp4: not a video" in output.text
    assert work.fetch(workspace, options, SilentListener()) == work.JobReport(
        "0 fetched; nothing new"
    )


def test_what_was_fetched_is_known_by_digest_only(workspace: Workspace) -> None:
    known = FetchArchive(workspace.store)
    assert "youtube secret" not in known
    known.add("youtube secret")
    assert "youtube secret" in known
    with workspace.store.begin() as session:
        (row,) = session.scalars(select(TakenRow))
    assert "secret" not in f"{row.key} {row.told}"


@pytest.mark.full
def test_a_data_set_is_asked_once_a_day_in_a_run_of_its_own(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nightly, "read", lambda _name, _folder: houses(tmp_path, 1))
    monkeypatch.setattr("evals.running.connect_to_prefect", lambda *_: None)
    options = EvaluateOptions(dataset="houses", folder=tmp_path)
    output = nightly.ask_all(workspace, options, DAY.date())
    assert output.ok
    assert output.text.startswith("houses-local-none-20310507: ")
    assert "100.0 (100-100) % right of 2 judged" in output.text
    assert nightly.ask_all(workspace, options, DAY.date()) == output
    nightly.ask_all(workspace, options, DAY.date() + timedelta(days=1))
    assert [one.name for one in evaluation_runs(workspace.store).items] == [
        "houses-local-none-20310508",
        "houses-local-none-20310507",
    ]


def test_a_state_tells_what_a_job_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from flows.schedules import runs

    monkeypatch.setattr(runs, "open_workspace", lambda *_, **__: nullcontext())

    def fails(_: Workspace) -> work.JobReport:
        raise InputError("the folder is gone")

    well, ill = work.JobReport("all well"), work.JobReport("2 findings", ok=False)
    states = [runs.run_in_background(lambda _, made=made: made) for made in (well, ill)]  # type: ignore[misc]
    assert [(state.name, state.message) for state in states] == [
        ("Completed", "all well"),
        ("Failed", "2 findings"),
    ]
    state = runs.run_in_background(fails)
    assert (state.name, state.message) == ("Failed", "the folder is gone")
