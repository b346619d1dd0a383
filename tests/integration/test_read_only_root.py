"""With a root that cannot be written, as in the image: only the data directory and /tmp are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from models.toolbox import Toolbox
from store.home import Home
from tests.support.media import make_video

ROOT = Path(__file__).parents[2]
NOTING = """
import atexit, json, os, sys
places = set()
CHANGES = {"os.mkdir": 0, "os.remove": 0, "os.rmdir": 0, "os.truncate": 0, "os.chmod": 0,
           "os.rename": 1, "os.link": 1, "os.symlink": 1, "shutil.copyfile": 1, "shutil.move": 1}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

def note(event, args):
    if event == "open" and not isinstance(args[0], int) and args[2] & WRITING:
        places.add(os.path.abspath(os.fsdecode(args[0])))
    elif event in CHANGES and not isinstance(args[CHANGES[event]], int):
        places.add(os.path.abspath(os.fsdecode(args[CHANGES[event]])))

sys.addaudithook(note)

def tell():
    found = json.dumps(sorted(places))
    with open(os.environ["NOTES"], "w") as notes:
        notes.write(found)

atexit.register(tell)
from cli.main import main
sys.argv[0] = "homer"
main()
"""


@pytest.mark.full
def test_only_the_data_directory_and_tmp_are_written(
    home: Home, make_database: Callable[[], str], tmp_path: Path, toolbox: Toolbox
) -> None:
    """Neither the home of the user, which is not there, nor where one is, nor the packages."""
    (home.root / "homer.toml").write_text(
        '[profiles.few]\nbase = "local"\nobjects = "none"\n'
        "[profiles.few.settings.watch]\nclip_ms = 1000\nsample_fps = 1.0\nkeyframes = 1\n"
    )
    recording = make_video(tmp_path / "film.mp4", seconds=1.0, audio=None)
    temporary, nowhere = tmp_path / "tmp", tmp_path / "nowhere"
    temporary.mkdir()
    environment = {
        "HOMER_HOME": str(home.root),
        "HOMER_WEIGHTS": str(toolbox.weights),
        "HOMER_DATABASE_URL": make_database(),
        "HOME": str(nowhere / "home"),
        "TMPDIR": str(temporary),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NOTES": str(tmp_path / "notes"),
    }
    arguments = ["ingest", str(recording), "--direct", "--profile", "few"]
    cwd = Path("/")
    done = subprocess.run(
        [sys.executable, "-c", NOTING, *arguments],
        env={"PATH": os.defpath, "PYTHONPATH": str(ROOT), **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    places = list(json.loads(Path(environment["NOTES"]).read_text()))
    assert any(place.startswith(f"{home.root}/blobs/") for place in places)
    allowed = (f"{home.root}/", f"{temporary}/", "/dev/")
    assert [place for place in places if not f"{place}/".startswith(allowed)] == []
    assert not nowhere.exists()
