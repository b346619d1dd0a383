"""Whatever Homer writes is its owner's only, whatever the umask and the folder's mode before."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import services.supervisor
from cli.main import app
from domain.errors import SetupError
from evals.report_formats import write
from flows.jobs import Jobs
from flows.uploads import store_upload
from graphs.concurrent import BatchResult, write_batch
from services.daemon import Daemon
from services.supervisor import AppServer, worker_command
from skills.library import write_skills
from store.blobs import BlobStore
from store.database import open_store
from store.files import MODULE, atomic_file, find_exposed, restrict_exposed, set_private_umask
from store.home import Home
from tests.support.asking import PARTY, remember_party
from tests.support.skills import a_skill

ROOT = Path(__file__).parents[2]
NOBODY = 65534
WIDE = ("blobs", "logs", "run", "uploads", "prefect", "backups", "fetched", ".streamlit")


@pytest.fixture
def careless() -> Iterator[None]:
    """A umask that keeps nothing from anybody."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A folder that every user can enter, unlike those that pytest makes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def wide(open_place: Path) -> Home:
    """A data directory that somebody made: open to all."""
    home = Home(open_place / "home")
    for name in ("", *WIDE):
        (home.root / name).mkdir(mode=0o755)
        (home.root / name).chmod(0o755)
    return home


def open_in(*places: Path) -> list[Path]:
    return list(find_exposed(places))


def environment(home: Home, database: str) -> dict[str, str]:
    return {"HOMER_HOME": str(home.root), "HOMER_DATABASE_URL": database}


def homer(home: Home, database: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command as a user runs it, in a shell whose umask is 0."""
    return subprocess.run(
        [sys.executable, "-m", "cli", *arguments],
        cwd=home.root.parent,
        env={**os.environ, **environment(home, database), "PYTHONPATH": str(ROOT)},
        umask=0,
        capture_output=True,
        text=True,
    )


def test_a_place_that_is_not_there_yet_is_passed_over(tmp_path: Path, database: str) -> None:
    """As in the first command of a new library."""
    exposed = tmp_path / "exposed"
    exposed.mkdir()
    exposed.chmod(0o755)
    assert open_in(tmp_path / "missing", exposed) == [exposed]
    checked = homer(Home(tmp_path / "new"), database, "doctor")
    assert "its owner alone can read it" in checked.stdout
    assert "FileNotFoundError" not in checked.stderr


def can_read(path: Path) -> bool:
    """Whether another user of this machine can list or read it."""
    command = ["ls", str(path)] if path.is_dir() else ["cat", str(path)]
    return subprocess.run(command, user=NOBODY, group=NOBODY, capture_output=True).returncode == 0


@pytest.fixture
def written(wide: Home, database: str, careless: None) -> Home:
    """A library in the wide folder, and what the commands write beside it."""
    with open_store(wide, database) as store:
        remember_party(store)
        store.blobs.put(b"a face")
    store_upload(wide, "talk.mp4", b"a film")
    (wide.root.parent / "word").write_text("correct horse\n")
    out = wide.root.parent / "out"
    out.mkdir(mode=0o755)
    done = homer(wide, database, "backup", str(out / "all.homer"))
    assert done.returncode == 0, done.stderr
    set_private_umask()  # As the command has done.
    for arguments in (
        ("export", PARTY, "--out", str(out / "party.zip")),
        ("skills", "export", "--out", str(out / "skills.json")),
        ("password", "--file", str(wide.root.parent / "word")),
        ("doctor", "--bundle", str(out / "report.zip")),
    ):
        result = CliRunner().invoke(app, list(arguments), env=environment(wide, database))
        assert result.exit_code in (0, 3), result.stderr
    return wide


def test_nothing_that_the_commands_write_can_be_read_by_others(written: Home) -> None:
    out = written.root.parent / "out"
    assert {one.name for one in out.iterdir()} == {
        *("party.zip", "all.homer", "skills.json", "report.zip")
    }
    assert open_in(written.root, *out.iterdir()) == []
    assert (written.root / "app.password").exists()
    assert list(written.blobs.rglob("*"))

    if os.geteuid() == 0:  # Only root can act as another user.
        every = [written.root, *written.root.rglob("*"), *(written.root.parent / "out").iterdir()]
        assert can_read(written.root.parent)
        assert [path for path in every if can_read(path)] == []


def test_what_a_library_call_writes_is_private_anyway(tmp_path: Path, careless: None) -> None:
    """As in a process of somebody else's, which never set Homer's umask."""
    blobs = BlobStore(str(tmp_path / "some/where"))
    blobs.make()
    blobs.put(b"a face")
    with atomic_file(tmp_path / "whole") as aside:
        aside.write_bytes(b"x")
        assert open_in(aside) == []
    write(tmp_path / "page.html", "<p>")
    write_skills(tmp_path / "skills.json", [a_skill()])
    results = iter([BatchResult("q", {"id": "q"}, None, 1, 1)])
    assert list(write_batch(tmp_path / "new/answers.jsonl", results))
    assert open_in(*tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["page.html", "answers.jsonl", "whole"])
def test_an_open_file_is_closed_before_anything_is_written_to_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text('{"id": 1}\n')
    path.chmod(0o666)
    if name == "page.html":
        write(path, "new")
    elif name == "answers.jsonl":
        assert list(write_batch(path, iter([BatchResult(2, {"id": 2}, None, 1, 1)])))
        assert len(path.read_text().splitlines()) == 2
    else:
        with atomic_file(path) as aside:
            aside.write_bytes(b"new")
    assert path.stat().st_mode & 0o777 == 0o600


def test_reports_still_go_to_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o666)
    threading.Thread(target=write, args=(pipe, "all of it")).start()
    assert pipe.read_text() == "all of it"


def test_a_file_beside_the_one_to_write_is_not_guessed(tmp_path: Path) -> None:
    """In a shared folder another user could have put a link where the file is written aside."""
    mine = tmp_path / "mine"
    mine.write_text("kept")
    (tmp_path / f".out.{os.getpid()}.part").symlink_to(mine)
    with atomic_file(tmp_path / "out") as aside:
        aside.write_bytes(b"theirs")
    assert mine.read_text() == "kept"


def test_home_as_the_data_directory_keeps_mode(wide: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    (wide.root / "public.html").write_text("for all")
    (wide.root / "public.html").chmod(0o644)
    monkeypatch.setenv("HOME", str(wide.root))
    wide.make()
    restrict_exposed(wide.places())
    assert wide.root.stat().st_mode & 0o777 == 0o755
    assert (wide.root / "public.html").stat().st_mode & 0o777 == 0o644
    assert open_in(*(wide.root / name for name in WIDE)) == []


@pytest.fixture
def doctor(database: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.setenv("HOMER_DATABASE_URL", database)

    def run(home: Home, *options: str) -> str:
        monkeypatch.setenv("HOMER_HOME", str(home.root))
        done = CliRunner().invoke(app, ["doctor", *options])
        assert done.exit_code in (0, 3), done.stderr
        return done.stdout + done.stderr

    return run


def test_doctor_mends_public_files(home: Home, doctor: Callable[..., str], tmp_path: Path) -> None:
    old = home.root / "blobs" / "old"
    old.parent.mkdir(exist_ok=True)
    old.write_bytes(b"a face")
    old.chmod(0o644)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "film.mp4").write_bytes(b"mine")
    (outside / "film.mp4").chmod(0o644)
    outside.chmod(0o755)
    (home.root / "linked").symlink_to(outside)
    (home.root / "film.mp4").symlink_to(outside / "film.mp4")
    os.link(outside / "film.mp4", home.root / "hard")
    assert "others may read" in doctor(home)
    output = doctor(home, "--fix")
    assert "for their owner only now" in output
    assert "hard" in output, "what has a name elsewhere is named, and left"
    assert old.stat().st_mode & 0o777 == 0o600
    assert (outside / "film.mp4").stat().st_mode & 0o777 == 0o644
    assert outside.stat().st_mode & 0o777 == 0o755
    (home.root / "hard").unlink()
    assert "others may read" not in doctor(home)
    assert "nothing" in doctor(home, "--fix")


def test_doctor_warns_of_the_data_directory_itself(wide: Home, doctor: Callable[..., str]) -> None:
    output = doctor(wide)
    assert "WARNING" in output
    assert "homer doctor --fix" in output


def place(folder: Path, *, mode: int = 0o755, owner: int = -1, within: str = "") -> Home:
    folder.chmod(mode)
    os.chown(folder, owner, -1)
    return Home(folder / within)


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({"mode": 0o755}, False),
        ({"mode": 0o777}, True),
        ({"mode": 0o1777}, True),
        ({"mode": 0o777, "within": "home"}, True),
        ({"mode": 0o777, "within": "deep/home"}, True),
        ({"mode": 0o1777, "within": "home"}, False),
        ({"mode": 0o1777, "within": "home", "owner": NOBODY}, True),
        ({"mode": 0o755, "within": "home", "owner": NOBODY}, False),
        ({"owner": NOBODY}, True),
        ({"mode": 0o777, "trusted": True}, False),
    ],
)
def test_a_data_directory_that_others_may_write_is_refused(
    open_place: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], refused: bool
) -> None:
    """They could put settings, code, or a folder of their own there."""
    if change.get("owner") and os.geteuid():
        pytest.skip("only root gives a folder away")
    (folder := open_place / "place").mkdir()
    trusted = change.get("trusted")
    home = place(folder, **{name: change[name] for name in change if name != "trusted"})
    monkeypatch.setenv("HOMER_HOME", str(home.root))
    monkeypatch.setenv("HOMER_TRUST_HOME", str(home.root) if trusted else "/elsewhere")
    for use in (home.make, Home.default, lambda: home.config):
        if refused:
            with pytest.raises(SetupError, match=r"others can write in .* set HOMER_HOME"):
                use()
        else:
            use()
    assert home.run.exists() != refused


COMMANDS = {
    "app": [*AppServer(Home(Path("/nowhere")))._command(1)],
    "prefect": [*services.supervisor._command(1)],
    "worker": [*worker_command("pool", 1)],
    "job": [*Jobs.command, "--help"],
    "watcher": [*MODULE, "store.postmaster"],
    "pip": [*MODULE, "pip", "--version"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_process_runs_code_of_its_working_folder(tmp_path: Path, name: str) -> None:
    for package in ("services", "cli", "ui", "flows", "store", "pip", "encodings", "domain"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')")
    # Without the arguments that would make it serve: what it imports first is all of it.
    command = [part for part in COMMANDS[name] if not part.startswith("--host")]
    subprocess.run(
        [*command, "--no-such-option"], cwd=tmp_path, capture_output=True, timeout=60, check=False
    )
    assert not (tmp_path / "mark").exists()


def test_neither_do_processes_of_processes(tmp_path: Path) -> None:
    """Such as those that perceive clips, which Python itself starts."""
    (tmp_path / "json.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')")
    code = (
        "from store.files import set_private_umask; import os, subprocess, sys; "
        "set_private_umask(); os.chdir(sys.argv[1]); "
        "subprocess.run([sys.executable, '-c', 'import json'])"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=True)
    assert not (tmp_path / "mark").exists()


def test_servers_are_started_elsewhere_than_in_the_data_directory(home: Home) -> None:
    daemon = Daemon(home, "probe", "/")
    with pytest.raises(SetupError, match=r"does not start \(in /\)"):
        daemon.launch(lambda _: [sys.executable, "-c", "import os; print('in', os.getcwd())"], {})
