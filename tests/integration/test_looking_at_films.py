"""Twenty questions about what two films show and nobody says, to a model that really sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.toolbox import Toolbox
from store.database import Store
from store.home import Home
from tests.conftest import WEIGHTS
from tests.support.seeing_model import Eyes
from tests.support.seen_films import CHANGES, FilmAnswers, ask_about_films, watch_films

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


def test_a_model_that_sees_is_right_about_pictures_and_only_with_the_pictures_and_their_refs(
    home: Home, store: Store, toolbox: Toolbox, tmp_path: Path
) -> None:
    asked = watch_films(home, store, toolbox, tmp_path)
    eyes = Eyes(toolbox.screen, toolbox.objects, toolbox.faces)
    found = ask_about_films(store, WEIGHTS, eyes, asked)
    assert (found.asked, found.replayed) == (20, 20)
    assert found.right >= 18
    for change in CHANGES.values():
        assert ask_about_films(store, WEIGHTS, eyes, asked, change) == FilmAnswers(20, 0, 20)
