"""A library has one text encoder: another one is refused, until all vectors are changed to its."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from cli.main import app
from domain import faults
from domain.asking import Mode
from domain.errors import Busy, InputError, ModelError
from domain.settings import Settings
from flows.reembed import fitting_thresholds, plan_reembedding, reembed
from flows.removal import delete_video_rows
from flows.workspace import Workspace
from library.memory import dump_lines, show_video
from memory.reembed import reembed_video
from models.ports import TextEmbedder
from models.profile import Profile, load_profile
from models.specs import EncoderSpec
from models.toolbox import Toolbox
from retrieval.retrievers import Retrievers
from store.advisory_locks import claim_encoder
from store.database import Store, open_store
from store.home import Home
from store.queries.clips import memory_view
from store.queries.encoders import begin_change, rows_left
from tests.support.changed_encoders import change_all
from tests.support.library import Quiet
from tests.support.memory import (
    VIDEO,
    LongerVectors,
    Perceived,
    Tools,
    WordVectors,
    local_writers,
    memorise,
    remember,
)
from tests.support.remembered import Tools as SearchTools
from tests.support.span_deletion import SETTINGS, cut, scenes, update_graph, watch_talk
from tests.support.tiny_text_encoder import encoder

NEW = LongerVectors()
OF_CLIPS = ("clip", "memory", "keyframe", "segment", "segment_revision")


def records(store: Store) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in dump_lines(store, VIDEO)]
    return [row for row in rows if row["row"] in OF_CLIPS]


def left(store: Store, *, anew: bool = False) -> int:
    with store.begin() as session:
        return rows_left(session, VIDEO, anew=anew).rows


def begin(store: Store) -> None:
    with store.begin() as session:
        begin_change(session, NEW.name, images=False)


def found(store: Store, query: str, text: TextEmbedder | None = None) -> str:
    with store.begin() as session:
        view = memory_view(session, [VIDEO])
    tools = SearchTools(text or WordVectors())
    result = Retrievers(store, tools, Settings()).search(view, Mode.VIDEO, query)
    return " ".join(piece.text for piece in result.evidence[:2])


def test_the_memory_is_that_of_a_video_watched_with_the_new_encoder(
    store: Store, make_database: Callable[[], str], tmp_path: Path
) -> None:
    watch_talk(store)
    with open_store(Home(tmp_path / "other").make(), make_database()) as other:
        watch_talk(other, text=LongerVectors())
        change_all(other, NEW, images=False)
        expected = records(other)
    progress = Quiet()
    total = left(store, anew=True)
    change_all(store, NEW, progress, images=False)
    assert records(store) == expected
    assert progress.steps == total > 0
    assert show_video(store, VIDEO).models["text"] == NEW.name


def test_an_interrupted_run_goes_on_and_searches_take_the_old_vectors_until_the_end(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(point: faults.FaultPoint) -> None:
        if point is faults.FaultPoint.REEMBEDDED_BATCH:
            raise KeyboardInterrupt

    monkeypatch.setattr("memory.reembed.CLIPS", 2)
    watch_talk(store)
    begin(store)
    before = left(store)
    monkeypatch.setattr(faults, "fault_point", broken)
    with pytest.raises(KeyboardInterrupt):
        reembed_video(store, VIDEO, NEW, Quiet())
    rest = left(store)
    assert 0 < rest < before
    for query in ("treasure marmalade", "boats sail every morning", "good night"):
        assert query.split()[0] in found(store, query).lower()
    monkeypatch.undo()
    progress = Quiet()
    change_all(store, NEW, progress, images=False)
    assert progress.steps == rest
    assert "marmalade" in found(store, "treasure marmalade", NEW).lower()


@pytest.mark.full
def test_clips_that_are_written_meanwhile_are_embedded_too(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch_talk(store, 3)
    added = False

    def write(point: faults.FaultPoint) -> None:
        nonlocal added
        if point is faults.FaultPoint.REEMBEDDED_BATCH and not added:
            added = True
            for one in list(scenes())[3:]:
                memorise(store, one)
                update_graph(store)

    monkeypatch.setattr(faults, "fault_point", write)
    change_all(store, NEW, images=False)
    assert added
    assert "good night" in found(store, "good night", NEW).lower()


def test_another_encoder_neither_writes_nor_searches_and_it_is_said_what_to_do(
    store: Store,
) -> None:
    watch_talk(store, 4)
    before = records(store)
    with pytest.raises(InputError, match=r"vectors of words, not of longer.*homer reembed"):
        remember(
            *(store, VIDEO, Perceived(list(scenes())[4]), local_writers()),
            *(Tools(LongerVectors()), SETTINGS),
        )
    assert records(store) == before
    with pytest.raises(InputError, match=r"vectors of words.*searches with longer"):
        found(store, "lighthouse", NEW)
    change_all(store, NEW, images=False)
    assert "lighthouse" in found(store, "lighthouse", NEW).lower()
    with pytest.raises(InputError, match="vectors of longer"):
        cut(store)
    delete_video_rows(store, VIDEO)
    watch_talk(store, 1)
    assert "lighthouse" in found(store, "lighthouse").lower(), "an emptied library begins anew"


def test_a_profile_asks_with_the_encoder_of_the_library(tmp_path: Path) -> None:
    config = tmp_path / "homer.toml"
    folder = encoder(tmp_path / "tiny")
    config.write_text(f"[profiles.own]\nbase = 'local'\ntext = '{folder}'\n")
    toolbox = Toolbox(load_profile("local", config), tmp_path)
    assert toolbox.of_library("onnx:tiny", None).text.name == "onnx:tiny"
    assert toolbox.of_library(None, None) is toolbox
    assert toolbox.of_library("of nobody", None) is toolbox


class Failing(LongerVectors):
    def embed(self, texts: Any) -> Any:
        raise ModelError("the server does not answer")


def test_an_encoder_that_fails_changes_nothing(store: Store) -> None:
    watch_talk(store)
    before = records(store)
    with pytest.raises(ModelError, match="does not answer"):
        change_all(store, Failing(), images=False)
    assert records(store) == before


def workspace(store: Store, profile: Profile) -> Workspace:
    return Workspace(store.home, store, profile, Toolbox(profile, Path("/nonexistent")))


def test_a_plan_says_what_it_takes(store: Store, tmp_path: Path) -> None:
    watch_talk(store)
    own = workspace(store, Profile(name="own", text=str(encoder(tmp_path / "tiny"))))
    plan = plan_reembedding(own, timed=True)
    assert plan.rows == left(store, anew=True) > 6
    assert plan.characters > 200
    assert (plan.cost_usd, plan.videos[0].video) == (0.0, VIDEO)
    assert plan.seconds is not None
    assert "$0.0000" in str(plan)
    unpriced = workspace(store, Profile(name="p", text="openai:text-embedding-new"))
    assert plan_reembedding(unpriced).cost_usd is None
    config = tmp_path / "homer.toml"
    config.write_text(
        "[profiles.paid]\nbase = 'local'\ntext = 'openai:text-embedding-new'\n"
        "[prices]\n'openai:text-embedding-new' = { input = 1000000, output = 0 }\n"
    )
    paid = plan_reembedding(workspace(store, load_profile("paid", config)))
    assert paid.cost_usd == pytest.approx(paid.tokens)
    house = EncoderSpec(base_url="http://127.0.0.1:1/v1")
    assert plan_reembedding(
        workspace(store, Profile(name="h", text="openai:bge", encoder=house))
    ).cost_usd == pytest.approx(0)


def test_two_runs_at_once_are_refused(store: Store, tmp_path: Path) -> None:
    watch_talk(store, 1)
    own = workspace(store, Profile(name="own", text=str(encoder(tmp_path / "tiny"))))
    plan = plan_reembedding(own)
    with claim_encoder(store) as claimed:
        assert claimed
        with pytest.raises(Busy, match="another homer changes the encoder"):
            reembed(own, plan, Quiet(), print, direct=True)
    reembed(own, plan, Quiet(), print, direct=True)
    assert plan_reembedding(own).rows == 0


def test_thresholds_are_fitted_by_pairs_seen(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unrelated lines have a cosine of about 0 with one, and of 0.25 with the other."""

    class Crowded(WordVectors):
        name, dimensions = "minilm", 65

        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            rows = np.pad(super().embed(texts), ((0, 0), (0, 1)), constant_values=(1 / 3) ** 0.5)
            return rows / np.float32((4 / 3) ** 0.5)

    class Both(SearchTools):
        def encoder(self, name: str) -> WordVectors | None:
            return Crowded() if name == "minilm" else None

    watch_talk(store)
    monkeypatch.setattr("flows.reembed.LEAST_LINES", 3)
    tools: Any = Both(WordVectors())
    profile = load_profile("local").model_copy(update={"text": "words"})
    fitting = fitting_thresholds(Workspace(store.home, store, profile, tools))
    assert fitting.splitlines() == [
        "settings.memory.same_fact = 0.80",
        "settings.ask.video_cosine = 0.33",
        "settings.ask.skill_cosine = 0.27",
    ]
    config = store.home.config
    config.write_text(f'[profiles.mine]\nbase = "local"\n{fitting}\n')
    assert load_profile("mine", config).settings.memory.same_fact == 0.80
    usual = profile.model_copy(update={"text": "minilm"})
    assert fitting_thresholds(Workspace(store.home, store, usual, tools)) == ""


def test_the_command_tells_and_does(
    store: Store, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch_talk(store)
    monkeypatch.setenv("HOMER_DATABASE_URL", database)
    profile = tmp_path / "multilingual.toml"
    profile.write_text(f"base = 'local'\ntext = '{encoder(tmp_path / 'tiny')}'\n")

    monkeypatch.setattr(
        "library.builds.fitting_thresholds", lambda _: "settings.x = 1\nsettings.y = 2"
    )

    def homer(*more: str) -> str:
        done = CliRunner().invoke(app, ["reembed", "--profile", str(profile), *more])
        assert done.exit_code == 0, done.output
        notes.append(done.stderr)
        return done.stdout

    notes = list[str]()
    assert "rows of 1 video, " in homer("--dry-run")
    assert json.loads(homer("--dry-run", "--json"))["rows"] == left(store, anew=True) > 0
    assert "rows are embedded again" in homer("--direct")
    assert "these thresholds fit onnx:tiny; put them below [profiles.multilingual] of" in notes[-1]
    assert "\nsettings.x = 1\nsettings.y = 2\n" in notes[-1]
    assert "nothing to do: all vectors are of onnx:tiny" in homer("--direct")
