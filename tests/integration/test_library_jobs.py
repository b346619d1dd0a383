"""The library page: adding, pausing, going on after a stop, trying again, deleting."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from domain.errors import InputError
from domain.media import ClipState, Video
from domain.rights import acting_user
from domain.watching import IngestEstimate
from flows.jobs import Job, Jobs
from flows.uploads import store_upload
from flows.video_locks import exclusive_lock
from library.videos import all_videos
from services.daemon import JobState
from store.database import Store
from store.queries.clips import mark_clip
from store.queries.videos import DONE, FAILED, WATCHING, add_video, set_video_state
from tests.support.app_pages import EVIL, open_page, press, sign_in, words
from tests.support.full_suite import in_full
from tests.support.media import make_video
from tests.support.memory import VIDEO, clip
from ui.ingestion import AllowedFolders

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def jobs(app_library: Store, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    """Jobs that only wait, and note with what they were begun."""
    pretend(monkeypatch, "import time; print('homer: a clip was odd', flush=True); time.sleep(60)")
    return Jobs(app_library.home)


def pretend(patch: pytest.MonkeyPatch, code: str) -> None:
    patch.setattr(Jobs, "command", (sys.executable, "-c", code))


@pytest.fixture
def recording(app_library: Store, tmp_path: Path) -> Path:
    """A film of four clips, two of which failed."""
    path = make_video(tmp_path / "film.mp4", seconds=1.0)
    add(app_library, path)
    with app_library.begin() as session:
        for index in (1, 2):
            mark_clip(session, VIDEO, index, ClipState.FAILED, f"the model said {EVIL}")
        for index in (0, 3):
            mark_clip(session, VIDEO, index, ClipState.DONE)
        set_video_state(session, VIDEO, FAILED, "2 clips could not be watched")
    return path


def add(app_library: Store, path: Path, name: str = VIDEO) -> None:
    with app_library.begin() as session:
        video = Video(id=name, title=path.stem, path=str(path), duration_ms=120_000)
        add_video(session, video, [clip(n) for n in range(4)], {})


def wait_until(so: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not so():
        assert time.monotonic() < end
        time.sleep(0.05)


def only(jobs: Jobs) -> Job:
    (found,) = jobs.every()
    return found


def started(jobs: Jobs, path: Path) -> Job:
    jobs.start([path], "local")
    wait_until(lambda: bool(only(jobs).errors))
    return only(jobs)


def unread(path: Path) -> str:
    """A page must not read a whole video: its job does."""
    raise AssertionError(f"{path} is read")


def test_what_cannot_be_added_is_reported(app_library: Store) -> None:
    page = press(open_page("library"), "Watch")
    assert "Name a file or folder" in words(page)
    page.text_input[0].input("/nowhere/at all.mp4")
    press(page, "Watch")
    assert "no such file or folder" in words(page)
    assert Jobs(app_library.home).every() == []


def uploaded(*files: tuple[str, bytes]) -> AppTest:
    """The page of the library after these files were uploaded and sent."""
    page = open_page("library")
    page.file_uploader[0].set_value([(name, data, "video/mp4") for name, data in files])
    return press(page, "Watch")


def test_an_upload_that_cannot_be_stored_is_listed_until_it_is_cleared(jobs: Jobs) -> None:
    page = uploaded(("empty.mp4", b""), ("talk.mp4", b"a talk"))
    for _ in range(2):
        assert "**empty.mp4** was not uploaded" in words(page)
        assert "Failed: empty.mp4: the file is empty" in words(page)
        page.run()
    # The other one is watched, and neither is in the form any more.
    assert [Path(source).name for source in only(jobs).sources] == ["talk.mp4"]
    assert not page.file_uploader[0].value
    press(page, "Clear")
    assert "was not uploaded" not in words(page)


def test_an_upload_without_room_says_so(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("flows.uploads.NamedTemporaryFile", full)
    page = uploaded(("talk.mp4", b"a talk"))
    assert "**talk.mp4** was not uploaded" in words(page.run())
    assert "(No space left on device)" in words(page)
    assert jobs.every() == []


@pytest.mark.parametrize("name", ["cut.mp4", in_full("notes.txt")])
def test_a_torn_upload_says_so(app_library: Store, recording: Path, name: str) -> None:
    data = recording.read_bytes()[:100] if name == "cut.mp4" else b"Buy milk."
    page = uploaded((name, data))
    jobs = Jobs(app_library.home)
    wait_until(lambda: not only(jobs).running)
    shown = words(page.run())
    kept = name.replace(".txt", " txt")  # no suffix but those of media
    assert f"**{kept}** ended with errors" in shown
    assert f"Failed: {only(jobs).errors[-1]}" in shown


@pytest.mark.parametrize("shared", [True, False])
def test_who_signs_in_names_only_paths_that_the_operator_allows(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    sign_in(monkeypatch, "ana@example.org")
    monkeypatch.setattr("ui.ingestion.SIGN_IN", SimpleNamespace(required=True))
    monkeypatch.setattr("ui.ingestion.SIGN_IN", SimpleNamespace(required=True))
    folders = (tmp_path / "shared",) if shared else ()
    monkeypatch.setattr("ui.ingestion.ALLOWED", AllowedFolders(folders))
    (tmp_path / "shared").mkdir()
    allowed = make_video(tmp_path / "shared" / "talk.mp4", seconds=1.0)
    for named in (str(make_video(tmp_path / "private.mp4", seconds=1.0)), "../private.mp4"):
        page = open_page("library")
        page.text_input[0].input(named)
        press(page, "Watch")
        assert jobs.every() == []
        refusal = "no such file in the folders" if shared else "homer up --videos FOLDER"
        assert refusal in words(page)
    page = open_page("library")
    page.text_input[0].input("talk.mp4")
    press(page, "Watch")
    assert [job.sources for job in jobs.every()] == ([(str(allowed),)] if shared else [])
    page = open_page("library")
    page.text_input[0].input("https://example.org/talk.mp4")
    press(page, "Watch")
    job = jobs.every()[0]
    assert (job.arguments[-3], *job.sources) == ("--public-only", "https://example.org/talk.mp4")


def test_a_job_is_seen_paused_gone_on_with_and_cleared(jobs: Jobs, recording: Path) -> None:
    first = started(jobs, recording)
    page = open_page("library")
    assert "film.mp4** being watched" in words(page)
    assert "a clip was odd" in words(page)
    press(page, "Pause")
    wait_until(lambda: not only(jobs).running)
    page.run()
    assert "film.mp4** paused" in words(page)
    press(page, "Continue")
    again = only(jobs)
    assert again.running
    assert again.id != first.id
    assert (
        again.arguments == first.arguments == ("ingest", "--profile", "local", "--", str(recording))
    )
    jobs.pause(again.id)
    wait_until(lambda: not only(jobs).running)
    press(page.run(), "Clear")
    assert (jobs.every(), list(jobs.home.run.glob("ingest-*"))) == ([], [])


def test_a_killed_job_is_reported_and_goes_on(jobs: Jobs, recording: Path) -> None:
    found = started(jobs, recording)
    page = open_page("library")
    os.kill(found.pid, signal.SIGKILL)
    wait_until(lambda: not only(jobs).running)
    page.run()
    said = words(page)
    assert "film.mp4** stopped early" in said
    assert "its process was killed" in said
    assert "Pause" not in [button.label for button in page.button]
    press(page, "Continue")
    assert "film.mp4** being watched" in words(page)
    jobs.pause(only(jobs).id)


def test_a_job_acts_for_whoever_began_it_and_tells_no_process_of_its_own(
    app_library: Store, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = "import os; from store.queries.rights import acting_name"
    tells = "print(acting_name(), 'HOMER_ACTING' in os.environ)"
    pretend(monkeypatch, f"{asks}; import cli.main as m; m.app = lambda **_told: {tells}; m.main()")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("LOGNAME", "bob")
    jobs = Jobs(app_library.home)
    for who, output in (("ann@example.org\0", "ann@example.org\ufffd False"), (None, "bob False")):
        token = acting_user.set(who)
        jobs.start([recording])
        acting_user.reset(token)
        wait_until(lambda: not only(jobs).running)
        assert output in "\n".join(only(jobs).said)


def test_a_job_that_is_gone_on_with_acts_for_who_pressed(
    app_library: Store, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streamlit does what a press does before the page says whose it is."""
    pretend(
        monkeypatch, "import os, sys; print('for', os.environ.get('HOMER_ACTING')); sys.exit(3)"
    )
    jobs = Jobs(app_library.home)
    jobs.start([recording])
    wait_until(lambda: not only(jobs).running)
    page = open_page("library")
    sign_in(monkeypatch, "ann@example.org")
    assert "for None" in only(jobs).said
    press(page, "Continue")
    wait_until(lambda: "for ann@example.org" in only(jobs).said)


def test_failed_clips_are_reported_with_their_reasons_and_tried_again(
    jobs: Jobs, app_library: Store, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.jobs.video_id", unread)
    page = open_page("library")
    said = words(page)
    assert "2 failed clips" in said
    assert f"clip 1, 0:30-1:00: the model said {EVIL}" in said
    press(page, "Try clip 2 again")
    assert only(jobs).arguments == ("retry", "--clip=2", "--", VIDEO)
    assert only(jobs).watches(str(recording))
    jobs.pause(only(jobs).id)
    wait_until(lambda: not only(jobs).running)
    press(page, "Try all again")
    assert only(jobs).arguments == ("retry", "--clip=1", "--clip=2", "--", VIDEO)
    jobs.pause(only(jobs).id)


def test_a_clip_whose_file_is_gone_cannot_be_tried_again(jobs: Jobs, recording: Path) -> None:
    recording.unlink()
    assert "any more: put it back there" in words(press(open_page("library"), "Try all again"))
    assert jobs.every() == []


def test_many_failed_clips_are_not_all_named(app_library: Store, tmp_path: Path) -> None:
    with app_library.begin() as session:
        video = Video(id=VIDEO, title="t", path=str(tmp_path / "t.mp4"), duration_ms=1)
        add_video(session, video, [clip(n) for n in range(20)], {})
        for n in range(20):
            mark_clip(session, VIDEO, n, ClipState.FAILED, "away")
    page = open_page("library")
    assert len([b for b in page.button if b.label.startswith("Try clip")]) == 5
    assert "The other 15 are among its clips" in words(page)


def test_what_another_process_watches_is_seen_too(app_library: Store, tmp_path: Path) -> None:
    """As a video that somebody watches from a terminal: no job of the app's knows it."""
    add(app_library, tmp_path / "talk.mp4")
    with app_library.begin() as session:
        set_video_state(session, VIDEO, WATCHING)
    assert "Paused" in words(open_page("library"))
    with exclusive_lock(app_library, VIDEO, "talk"):
        page = open_page("library")
        assert "talk** being watched by another homer process" in words(page)
        assert next(b for b in page.button if b.label == "Delete").disabled
    page.run()
    assert "another homer process" not in words(page)


def test_what_others_watch_is_seen_behind_many(app_library: Store, tmp_path: Path) -> None:
    for n in range(30):
        add(app_library, tmp_path / f"paused {n}.mp4", f"{n:016}")
    add(app_library, tmp_path / "zebra.mp4")
    with app_library.begin() as session:
        for name in (*(f"{n:016}" for n in range(30)), VIDEO):
            set_video_state(session, name, WATCHING)
    with exclusive_lock(app_library, VIDEO, "zebra"):
        assert "zebra** being watched by another homer process" in words(open_page("library"))


def test_a_job_that_ended_as_it_was_paused_is_reported_as_it_ended(
    app_library: Store, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has said so already, and its process is only about to go."""
    ended = "import os, time; open(os.environ['HOMER_JOB_END'], 'w').write('0')"
    pretend(monkeypatch, f"{ended}; print('homer: done', flush=True); time.sleep(60)")
    jobs = Jobs(app_library.home)
    jobs.pause(started(jobs, recording).id)
    wait_until(lambda: not only(jobs).running)
    assert only(jobs).stage is JobState.DONE


def test_what_will_go_is_reported_before_it_goes(app_library: Store, recording: Path) -> None:
    page = press(open_page("library"), "Delete")
    output = next(one.value for one in page.markdown if "This deletes" in one.value)
    assert "4 clips" in output
    assert "The file itself stays" in output
    press(page, "Keep it")
    assert all_videos(app_library).items
    press(press(page, "Delete"), "Yes, delete it")
    assert "film is deleted, with 0 images." in words(page)
    assert all_videos(app_library).items == ()
    assert recording.exists()


def test_an_upload_that_is_deleted_leaves_no_file(app_library: Store) -> None:
    path = store_upload(app_library.home, "../../a talk.mp4", b"not a video")
    assert app_library.home.uploads in path.parents
    add(app_library, path, path.parent.name)
    with app_library.begin() as session:
        set_video_state(session, path.parent.name, DONE)
    page = press(open_page("library"), "Delete")
    assert "The uploaded file goes too" in words(page)
    press(page, "Yes, delete it")
    assert "and so is its upload" in words(page)
    assert not path.parent.exists()


def test_an_upload_that_became_no_video_goes_when_its_job_is_cleared(
    app_library: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = store_upload(app_library.home, "notes.mp4", b"not a video")
    known = store_upload(app_library.home, "talk.mp4", b"a talk")
    add(app_library, known, known.parent.name)
    pretend(monkeypatch, "raise SystemExit(2)")
    jobs = Jobs(app_library.home)
    jobs.start([path, known])
    wait_until(lambda: not only(jobs).running)
    assert "became no video: notes.mp4" in words(press(open_page("library"), "Clear"))
    assert not path.exists()
    assert known.exists()


def test_an_upload_stays_for_as_long_as_a_job_may_watch_it(jobs: Jobs) -> None:
    """One of two tabs still has the job on it that was gone on with in the other."""
    path = store_upload(jobs.home, "talk.mp4", b"a talk")
    jobs.pause(started(jobs, path).id)
    wait_until(lambda: not only(jobs).running)
    old, page = only(jobs), open_page("library")
    jobs.go_on(old.id)
    press(page, "Clear")
    assert path.exists()
    assert only(jobs).id != old.id
    jobs.pause(only(jobs).id)
    wait_until(lambda: not only(jobs).running)
    assert jobs.unclaimed_sources([str(path)]) == []
    press(page.run(), "Clear")
    assert not path.exists()


def test_nothing_to_watch_is_no_job(app_library: Store, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        Jobs(app_library.home).start([tmp_path])
    assert Jobs(app_library.home).every() == []


def test_what_a_file_will_cost_is_said_before_it_is_watched(
    app_library: Store, jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_video(tmp_path / "talk.mp4", seconds=1.0)
    estimate = IngestEstimate(title="talk", clips=3, images=4.5, tokens_in=900.0, cost_usd=0.25)
    monkeypatch.setattr("ui.ingestion.estimate_file", lambda _, file: {path: estimate}[file])
    page = open_page("library")
    page.text_input[0].input(str(path))
    press(page, "Estimate")
    assert "talk: 3 clips; 4.5 images and 900 tokens a clip" in words(page)
    assert jobs.every() == []
    assert not all_videos(app_library).items
    page.text_input[0].input("")
    press(page, "Estimate")
    assert "Name a file or folder on this machine." in words(page)
