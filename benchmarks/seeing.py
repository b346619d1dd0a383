"""What a model that really sees answers from the images it is sent, and from others.

    python -m benchmarks.seeing

Two films of cards that show what nobody says are made and watched with the profile `local`. Twenty
questions about them are answered by a model behind a local server that looks at the images of its
requests, and at nothing else. Then the same with images or labels changed on the way, where no
answer can be right. Each answer is replayed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from models.profile import load_profile
from models.toolbox import Toolbox
from store.database import open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from tests.support.seeing_model import Eyes
from tests.support.seen_films import CHANGES, ask_about_films, watch_films


def main() -> None:
    """Print a line for the images as they are sent, and for each change to them."""
    weights = Home.default().weights
    toolbox = Toolbox(load_profile("local"), weights)
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home").make()
        try:
            with open_store(home) as store:
                asked = watch_films(home, store, toolbox, Path(folder))
                eyes = Eyes(toolbox.screen, toolbox.objects, toolbox.faces)
                for name, change in {"as sent": None, **CHANGES}.items():
                    found = ask_about_films(store, weights, eyes, asked, change)
                    replayed = f"{found.replayed} replayed with the same bytes and no call"
                    print(f"{name}: {found.right} of {found.asked} right, {replayed}", flush=True)
        finally:
            EmbeddedPostgres(home).stop()


if __name__ == "__main__":
    main()
