"""What a release leaves behind: a library, an export and the file of a forgotten person.

``python -m tests.support.release_files FOLDER`` writes them; a release stores its own once, beside
those before. Later versions open all of them: ``tests/integration/test_opens_releases.py``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from people.forget import forget, restore_forgotten
from store.backup import back_up
from store.database import Store, open_store
from store.export import export_video
from store.home import Home
from tests.support.library import FULL, Quiet, all_dumps, fill_library
from tests.support.memory import WordVectors

RELEASES = Path(__file__).parents[1] / "releases"
LIBRARY, EXPORT, FORGOTTEN, ABOUT = "library.homer", "video.zip", "forgotten.zip", "about.json"


def write(store: Store, folder: Path) -> None:
    """Fill an empty library, and write its files.

    ``about.json`` says what must come of them: the trajectory, and the dumps of the export's
    library, of the back-up's, in which a person was forgotten, and of that after they came back.
    """
    folder.mkdir(parents=True)
    trajectory = fill_library(store)
    exported = all_dumps(store)[FULL]
    export_video(store, FULL, folder / EXPORT)
    forget(store, FULL, "0", WordVectors(), folder / FORGOTTEN)
    back_up(store, folder / LIBRARY, Quiet())
    about: dict[str, Any] = {"trajectory": trajectory, "exported": exported}
    about["backed up"] = all_dumps(store)
    restore_forgotten(store, FULL, folder / FORGOTTEN)
    about["brought back"] = all_dumps(store)
    (folder / ABOUT).write_text(json.dumps(about, indent=0, ensure_ascii=False))


if __name__ == "__main__":
    os.environ.pop("HOMER_DATABASE_URL", None)
    with TemporaryDirectory() as home, open_store(Home(Path(home)).make()) as store:
        write(store, Path(sys.argv[1]))
