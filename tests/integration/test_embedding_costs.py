"""What an embeddings endpoint takes is estimated before, and is on record like other calls."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update
from typer.testing import CliRunner

from cli.main import app
from domain.asking import Mode, Question
from domain.errors import ModelError
from domain.settings import ClipViewKind, MemorySettings, Settings, WatchSettings
from flows.alert_judging import AlertJudge
from flows.build import build
from flows.estimate import SAMPLE, estimate_file
from flows.reembed import plan_reembedding, reembed
from flows.watching import SilentListener, watch_files
from flows.workspace import Workspace
from graphs.replay import replay
from library import alerts
from library.memory import dump_lines, show_video
from library.trajectories import ingest_usage, usage_in
from memory.delete_span import delete_span
from models.ports import TextEmbedder
from models.profile import Profile
from models.specs import ChatSpec, EncoderSpec, Price
from models.text_endpoint import recorded_search, searches_so_far
from models.toolbox import Toolbox
from people.forget import forget
from retrieval.retrievers import Retrievers
from retrieval.search_once import search_once
from store.database import Store
from store.home import Home
from store.queries.trajectories import embeddings_of, events_of
from store.queries.videos import DONE, set_video_state
from store.tables.schema import LibraryRow, ModelCallRow
from strategies.registry import find_strategy
from tests.integration.test_shown_clips import counting
from tests.support.api import WordState, client_of
from tests.support.asking import PARTY, remember_party
from tests.support.changed_encoders import change_all
from tests.support.embeddings_server import count_tokens, server, word_vectors
from tests.support.library import Quiet
from tests.support.light_models import LightToolbox
from tests.support.media import make_video
from tests.support.memory import VIDEO, WordVectors, known_video, memorise, percept, said
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.remembered import Tools as WordTools
from tests.support.runs import ask
from tests.support.span_deletion import SPAN, watch_talk

SPOKEN = (
    "Welcome back to the harbour, where the second ship has just arrived.",
    "She brings coffee, sugar and a few hundred letters for the islands.",
    "Nobody knows who painted the red line along the hull.",
    "We asked the captain, and he only laughed.",
    "In the afternoon the crew repairs the mast with new rope.",
    "The market opens at six, long before the sun is up.",
    "Prices have doubled since last winter, says the woman with the scales.",
    "Her brother keeps the books and does not trust the bank.",
    "A storm is expected on Friday, so everything must be ashore by then.",
    "That is all from the harbour for today.",
)
PRICE = Price(input=1.0, output=0.0)


class EndpointTools(LightToolbox):
    """Models that see nobody, and the profile's own text encoder."""

    @property
    def text(self) -> TextEmbedder:
        if self._endpoint is None:
            self._endpoint = self._text_encoder(self.profile)
        return self._endpoint

    _endpoint: TextEmbedder | None = None


def workspace(
    home: Home, store: Store, url: str, clip_view: ClipViewKind = "keyframes", **more: Any
) -> Workspace:
    watch = WatchSettings(clip_ms=2_000, keyframes=1, subtitles="use")
    profile = Profile(
        name="p",
        text="openai:tiny",
        encoder=EncoderSpec(base_url=url, price=PRICE, passage_prefix="passage: "),
        settings=Settings(watch=watch, memory=MemorySettings(clip_view=clip_view)),
        objects="none",
        sounds="none",
        **more,
    )
    notes = home.root / "notes"
    notes.mkdir()
    return Workspace(home, store, profile, EndpointTools(profile, notes))


def talk(tmp_path: Path) -> Path:
    """A video of 20 s with a sentence in every clip of 2 s."""
    path = make_video(tmp_path / "harbour.mp4", seconds=20.0, scene_s=0.5, silent=True)
    cues = (f"00:{2 * n:02}.100 --> 00:{2 * n + 1:02}.900\n{one}" for n, one in enumerate(SPOKEN))
    (tmp_path / "harbour.vtt").write_text("WEBVTT\n\n" + "\n\n".join(cues) + "\n")
    return path


class Questioned(Toolbox):
    """The profile's own text encoder, and no reranker."""

    @property
    def reranker(self) -> None:
        return None


def embedded(store: Store) -> list[ModelCallRow]:
    with store.begin() as session:
        rows = list(session.scalars(select(ModelCallRow).where(ModelCallRow.purpose == "embed")))
        session.expunge_all()
    return rows


def counted(requests: list[list[str]]) -> int:
    return sum(count_tokens(text) for texts in requests for text in texts)


def test_watching_by_rules_takes_of_an_endpoint_what_was_estimated(
    home: Home, store: Store, tmp_path: Path
) -> None:
    path = talk(tmp_path)
    with server(word_vectors) as (url, requests):
        opened = workspace(home, store, url)
        estimate = estimate_file(opened, path)
        sent = {text.removeprefix("passage: ") for texts in requests for text in texts}
        assert sent == set(SAMPLE), "nothing of the video is sent for an estimate"
        requests.clear()
        (outcome,) = watch_files(opened, [path], SilentListener(), direct=True)
    assert outcome.video
    taken = counted(requests)
    used = ingest_usage(store, outcome.video)
    assert used.tokens_in == taken
    assert estimate.tokens_in * 10 == pytest.approx(taken, rel=0.1)
    assert used.cost_usd == pytest.approx(taken / 1e6)
    assert estimate.cost_usd == pytest.approx(used.cost_usd, rel=0.1)
    assert str(estimate).startswith(f"harbour: 10 clips; {estimate.tokens_in:,.0f} tokens a clip")
    cost = show_video(store, "harbour").cost
    assert (cost.tokens_in, cost.failed) == (taken, 0)
    assert all(clip.cost.tokens_in > 0 for clip in show_video(store, "harbour").clips)


LINES = [
    {
        "kind": "episodic",
        "text": f"At this moment the man points at number {n} on the wall, and nobody answers him.",
        "start_s": n / 12,
        "end_s": n / 12 + 0.5,
    }
    for n in range(24)
]
SUMMARY = "They go on with the wall, and one of them counts what is left. " * 6
PATCH = [
    {"label": f"Part {n} of the work", "summary": SUMMARY, "clips": list(clips)}
    for n, clips in enumerate((range(3), range(3, 6), range(6, 8), range(8, 10)))
]


def write(request: dict[str, Any]) -> Answer:
    of_clip = "Write the lines of this clip" in json.dumps(request)
    reply = {"lines": LINES} if of_clip else {"segments": PATCH}
    return Answer(reply, tokens=(1_000, len(json.dumps(reply)) // 4))


@pytest.mark.full
def test_what_a_model_writes_is_part_of_estimate(home: Home, store: Store, tmp_path: Path) -> None:
    path = talk(tmp_path)
    with server(word_vectors) as (url, requests), OpenAIServer(write) as model:
        spec = ChatSpec(model="openai:m", base_url=model.base_url, price=PRICE)
        opened = workspace(home, store, url, writer="llm", chat={"default": spec})
        on_machine = opened.profile.model_copy(update={"text": "minilm"})
        without = estimate_file(replace(opened, profile=on_machine), path)
        estimate = estimate_file(opened, path)
        requests.clear()
        (outcome,) = watch_files(opened, [path], SilentListener(), direct=True)
    assert outcome.exit_code == 0
    of_endpoint = 10 * (estimate.tokens_in - without.tokens_in)
    assert of_endpoint == pytest.approx(counted(requests), rel=0.1)
    assert estimate.cost_usd is not None
    assert without.cost_usd is not None
    assert estimate.cost_usd - without.cost_usd == pytest.approx(of_endpoint / 1e6, rel=0.01)


@pytest.mark.full
def test_frames_take_what_was_estimated(home: Home, store: Store, tmp_path: Path) -> None:
    path = talk(tmp_path)
    with server(word_vectors) as (url, requests), OpenAIServer(counting) as model:
        chat = {"default": ChatSpec(model="openai:m", base_url=model.base_url, price=PRICE)}
        opened = workspace(home, store, url, clip_view="frames", writer="llm", chat=chat)
        with client_of(WordState(store, "p", folders=(tmp_path,), models=opened.toolbox)) as client:
            told = client.post("/videos/estimate", json={"path": str(path)}).json()
        estimate = estimate_file(opened, path)
        assert not model.requests
        requests.clear()
        (outcome,) = watch_files(opened, [path], SilentListener(), direct=True)
        taken = counted(requests)
    used = ingest_usage(store, outcome.video)
    assert used.images / used.clips == pytest.approx(estimate.images, rel=0.1)
    assert estimate.images > 1, "frames besides keyframes"
    wanted = 10 * (estimate.tokens_in + estimate.tokens_out)
    assert used.tokens_in + used.tokens_out == pytest.approx(wanted, rel=0.1)
    assert used.tokens_in > taken > 0
    assert used.cost_usd == pytest.approx(estimate.cost_usd, rel=0.1)
    assert (told["clips"], told["tokens_in"]) == (10, pytest.approx(estimate.tokens_in))
    assert told["cost_usd"] == pytest.approx(estimate.cost_usd)


@pytest.mark.full
def test_changing_the_endpoint_takes_the_estimate(home: Home, store: Store, tmp_path: Path) -> None:
    watch_talk(store)
    with server(word_vectors) as (url, requests):
        opened = workspace(home, store, url)
        plan = plan_reembedding(opened, timed=True)
        requests.clear()
        reembed(opened, plan, Quiet(), print, direct=True)
        taken = counted(requests)
        assert plan.tokens == pytest.approx(taken, rel=0.1)
        assert plan.cost_usd == pytest.approx(taken / 1e6, rel=0.1)
        assert show_video(store, VIDEO).cost.tokens_in == taken
        change_all(store, WordVectors(), images=False)
        requests.clear()
        again = plan_reembedding(opened, timed=True)
    assert {text for texts in requests for text in texts} == {f"passage: {one}" for one in SAMPLE}
    assert again.tokens == pytest.approx(taken, rel=0.02), "known from the record"


def test_a_question_has_embeddings_on_record_and_replays(home: Home, store: Store) -> None:
    with server(word_vectors) as (url, requests):
        toolbox = Questioned(workspace(home, store, url).profile, Path("/nonexistent"))
        remember_party(store)
        asked = ask(store, toolbox, Question(text="Who plays the piano?", videos=(PARTY,)))
        taken = counted(requests)
        again = replay(store, asked.trajectory_id)
        assert counted(requests) == taken
    assert again.whole
    assert {row.trajectory_id for row in embedded(store)} == {asked.trajectory_id}
    with store.begin() as session:
        used = usage_in(
            events_of(session, asked.trajectory_id), embeddings_of(session, asked.trajectory_id)
        )
    assert used.by_purpose["embed"].tokens_in == used.total.tokens_in == taken > 0


@pytest.mark.full
def test_deleting_and_forgetting_have_their_embeddings_on_record(home: Home, store: Store) -> None:
    """Although both delete calls on record."""
    watch_talk(store)
    with server(word_vectors) as (url, requests):
        text = workspace(home, store, url).toolbox.text
        change_all(store, text, images=False)
        requests.clear()
        delete_span(store, VIDEO, SPAN, text, MemorySettings())
        after_deletion = counted(requests)
        assert sum(row.tokens_in for row in embedded(store)) == after_deletion > 0
        forget(store, VIDEO, "0", text)
        assert counted(requests) > after_deletion
    rows = embedded(store)
    assert {row.video_id for row in rows} == {VIDEO}
    assert sum(row.tokens_in for row in rows) >= counted(requests) - after_deletion


def test_building_a_memory_has_its_embeddings_on_record(home: Home, store: Store) -> None:
    watch_talk(store)
    with store.begin() as session:
        set_video_state(session, VIDEO, DONE)
    with server(word_vectors) as (url, requests):
        build(workspace(home, store, url), VIDEO, find_strategy("worldmm"), lambda *_: None)
    rows = embedded(store)
    assert {(row.video_id, row.clip) for row in rows} == {(VIDEO, None)}
    assert sum(row.tokens_in for row in rows) == counted(requests) > 0
    assert sum(row.cost_usd for row in rows) == pytest.approx(counted(requests) / 1e6)


def judge_a_ladder(home: Home, store: Store, url: str) -> int:
    """Judge a clip, by an alert that it answers, with an endpoint; return the number of hits."""
    known_video(store, 2)
    opened = workspace(home, store, url)
    opened = replace(opened, toolbox=Questioned(opened.profile, Path("/nonexistent")))
    alerts.add_alert(opened, "ladder", "someone carries a ladder")
    memorise(store, percept(1, utterances=(said(32, "Look, someone carries a ladder."),)))
    return len(AlertJudge(opened).judge_waiting()[0])


def test_judging_by_alerts_has_its_embeddings_on_record_with_clip(home: Home, store: Store) -> None:
    with server(word_vectors) as (url, requests):
        assert judge_a_ladder(home, store, url) == 1
        taken = counted(requests)
    rows = embedded(store)
    assert {(row.video_id, row.clip) for row in rows} == {(VIDEO, 1)}
    assert sum(row.tokens_in for row in rows) == taken > 0
    assert show_video(store, VIDEO).cost.cost_usd == pytest.approx(taken / 1e6)


def test_a_request_of_judging_that_failed_is_on_record(home: Home, store: Store) -> None:
    with server(lambda _: (400, {"error": {"message": "too long"}})) as (url, _):
        assert judge_a_ladder(home, store, url) == 0
    judged, probed = embedded(store)
    assert (judged.video_id, judged.clip) == (probed.video_id, probed.clip) == (VIDEO, 1)
    assert "too long" in (judged.error or "")


SECOND = "tiny"
"""A profile of the endpoint, in the home's ``homer.toml``."""


def endpoint_profile(home: Home, url: str) -> str:
    path = home.root / "paid.toml"
    path.write_text(
        f"""base = 'local'
text = 'openai:{SECOND}'
encoder = {{ base_url = '{url}', key = '', price = {{ input = 1.0, output = 0.0 }} }}
"""
    )
    return str(path)


def searched(store: Store) -> list[ModelCallRow]:
    with store.begin() as session:
        rows = list(session.scalars(select(ModelCallRow).where(ModelCallRow.purpose == "search")))
        session.expunge_all()
    return rows


def test_single_searches_have_their_embeddings_on_record_and_say_what_they_took(
    home: Home, store: Store, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch_talk(store)
    monkeypatch.setenv("HOMER_DATABASE_URL", database)

    def homer(*words: str) -> Any:
        done = CliRunner().invoke(app, [*words])
        assert done.exit_code == 0, done.output
        return done

    with server(word_vectors) as (url, requests):
        profile = endpoint_profile(home, url)
        homer("reembed", "--direct", "--profile", profile)
        before = list(dump_lines(store, VIDEO))
        memory = show_video(store, VIDEO).cost
        requests.clear()
        said = homer("search", "the lighthouse", "--profile", profile)
        first = counted(requests)
        assert f"the search took {first:,} tokens, ${first / 1e6:.6f} of the" in said.stderr
        requests.clear()
        used = json.loads(homer("search", "the boats", "--profile", profile, "--json").stdout)
        second = counted(requests)
        assert used["cost"]["tokens"] == second
        assert used["cost"]["cost_usd"] == pytest.approx(second / 1e6)
        requests.clear()
        tool = homer("tool", "event", "boats", "--profile", profile, "-s", "homer")
        third = counted(requests)
        assert f"took {third:,} tokens" in tool.stderr
        requests.clear()
        homer("alert", "add", "boats", "the boats", "--profile", profile)
        tried = homer("alert", "test", "boats", "--profile", profile)
        fourth = counted(requests)
        assert f"took {fourth:,} tokens" in tried.stderr
    taken = first + second + third + fourth
    rows = searched(store)
    assert {(row.video_id, row.trajectory_id) for row in rows} == {(None, None)}
    assert sum(row.tokens_in for row in rows) == taken > fourth > 0
    assert searches_so_far(store).cost_usd == pytest.approx(taken / 1e6)
    assert f"single searches took {taken:,} tokens" in homer("videos").stderr
    assert show_video(store, VIDEO).cost == memory, "it is no cost of the memory"
    assert list(dump_lines(store, VIDEO)) == before


def test_local_search_is_free(store: Store, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    watch_talk(store)
    monkeypatch.setenv("HOMER_DATABASE_URL", database)
    retrievers = Retrievers(store, WordTools(), Settings())
    with recorded_search(store) as cost:
        search_once(store, retrievers, Mode.VIDEO, "the lighthouse")
    assert (str(cost.usage), searched(store)) == ("", [])
    assert "single searches" not in CliRunner().invoke(app, ["videos"]).stderr


@pytest.mark.full
def test_a_search_that_fails_is_on_record(home: Home, store: Store) -> None:
    watch_talk(store)
    with store.begin() as session:
        session.execute(update(LibraryRow).values(text_encoder="openai:tiny"))
    with server(lambda _: (400, {"error": {"message": "too long"}})) as (url, _):
        retrievers = Retrievers(store, workspace(home, store, url).toolbox, Settings())
        with pytest.raises(ModelError, match="too long"), recorded_search(store):
            search_once(store, retrievers, Mode.VIDEO, "the lighthouse")
    assert "too long" in str(searched(store)[0].error)


def test_the_api_says_what_a_search_took(home: Home, store: Store) -> None:
    remember_party(store)
    with server(word_vectors) as (url, requests):
        toolbox = Questioned(workspace(home, store, url).profile, Path("/nonexistent"))
        with client_of(WordState(store, "p", models=toolbox)) as client:
            found = client.get("/search", params={"query": "piano"}).json()
            taken = counted(requests)
            requests.clear()
            used = client.post("/tools/event", json={"query": "piano", "strategy": "homer"}).json()
    assert found["cost"] == {
        "requests": len(searched(store)) - used["cost"]["requests"],
        "tokens": taken,
        "cost_usd": pytest.approx(taken / 1e6),
    }
    assert used["cost"]["tokens"] == counted(requests) > 0
