"""Text encoders of a user's own: a folder or an endpoint keeps the port's promises, or says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select, update

from domain.asking import Mode
from domain.errors import ModelError, SetupError, WeightsMissing
from domain.memories import MemoryView, Scope
from domain.settings import Settings
from flows.ingest_video import models_used
from models.endpoint import key_variable
from models.ports import TextEmbedder, embed_queries
from models.profile import GEMINI_URL, Profile
from models.specs import EncoderSpec, is_priced
from models.text_embedding import read_encoder_folder
from models.toolbox import Toolbox
from retrieval.retrievers import Retrievers
from services.health import check_text_model
from store.database import Store
from store.tables.schema import ClipRow, MemoryRow, VideoRow
from tests.support.embeddings_server import server, vectors
from tests.support.remembered import Said, watch
from tests.support.remembered import Tools as SearchTools
from tests.support.tiny_text_encoder import SIZE, encoder, write


def embedder(folder: Path, **settings: Any) -> TextEmbedder:
    return Toolbox(Profile(name="own", text=str(folder), **settings), folder / "no-weights").text


def test_a_german_text_is_near_its_english_query(tmp_path: Path) -> None:
    text = embedder(encoder(tmp_path / "tiny"), text_languages=("de", "en"))
    rows = text.embed(["Hund", "Tor", "der Regen"])
    (query,) = embed_queries(text, ["dog"])
    assert (text.name, text.dimensions, text.languages) == ("onnx:tiny", SIZE, ("de", "en"))
    assert np.allclose(rows @ query, [1, 0, 0])
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)


def test_a_row_depends_on_its_own_text_only(tmp_path: Path) -> None:
    text = embedder(encoder(tmp_path / "tiny"))
    texts = ["dog", "gate rain dog", "", "unheard of", "dog", "rain " * 20]
    alone = np.vstack([text.embed([one]) for one in texts])
    assert np.array_equal(text.embed(texts), alone)
    assert np.isfinite(alone).all()
    assert text.embed([]).shape == (0, SIZE)


@pytest.mark.parametrize("inside", ["", "onnx"])
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("inputs", [("input_ids",), ("input_ids", "token_type_ids")])
def test_exports_of_several_shapes_are_read(
    tmp_path: Path, inside: str, pooled: bool, inputs: tuple[str, ...]
) -> None:
    folder = encoder(tmp_path / "tiny", inside=inside, pooled=pooled, inputs=inputs)
    first, second = embedder(folder).embed(["dog gate", "Hund Tor"])
    assert np.array_equal(first, second)


@pytest.mark.parametrize(
    ("pooling", "same"),
    [
        ("mean_tokens", "gate dog"),
        ("cls_token", "dog rain"),
        ("lasttoken", "rain gate"),
        ("max_tokens", "dog dog dog gate"),
    ],
)
def test_tokens_are_pooled_as_the_folder_states(tmp_path: Path, pooling: str, same: str) -> None:
    text = embedder(encoder(tmp_path / "tiny", pooling=pooling))
    one, other, unlike = text.embed(["dog gate", same, "rain rain"])
    assert one @ other == pytest.approx(1)
    assert one @ unlike == pytest.approx(0)


def test_queries_and_passages_have_the_prefixes_of_the_model(tmp_path: Path) -> None:
    prompts = {"query": "query: ", "passage": "passage: "}
    text = embedder(encoder(tmp_path / "tiny", prompts=prompts))
    assert np.array_equal(
        text.embed(["dog"]), embedder(encoder(tmp_path / "bare")).embed(["passage: dog"])
    )
    assert embed_queries(text, ["query"])[0, 4] > text.embed(["query"])[0, 4]


def test_a_profile_may_state_the_prefixes(tmp_path: Path) -> None:
    folder = encoder(tmp_path / "tiny", prompts={"query": "rain "})
    spec = EncoderSpec(query_prefix="query: ", passage_prefix="passage: ")
    stated, plain = embedder(folder, encoder=spec), embedder(encoder(tmp_path / "plain"))
    assert np.array_equal(stated.embed(["dog"]), plain.embed(["passage: dog"]))
    assert np.array_equal(embed_queries(stated, ["dog"]), plain.embed(["query: dog"]))


def test_a_text_is_cut_where_the_model_stops_reading(tmp_path: Path) -> None:
    text = embedder(encoder(tmp_path / "tiny", max_tokens=2))
    assert np.array_equal(text.embed(["dog dog rain"]), text.embed(["dog dog"]))


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_missing_file_is_named_with_where_to_put_it(tmp_path: Path, name: str) -> None:
    folder = encoder(tmp_path / "tiny")
    (folder / name).unlink()
    with pytest.raises(WeightsMissing, match=f"{folder} lacks {name}"):
        embedder(folder)
    (found,) = check_text_model(Profile(name="own", text=str(folder)), tmp_path)
    assert (found.ok, found.fix) == (False, f"put {name} into {folder}")


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "1_Pooling/config.json"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    folder = encoder(tmp_path / "tiny")
    (folder / name).write_bytes(b"{not a model")
    with pytest.raises(WeightsMissing, match=name):
        embedder(folder)


def test_a_model_with_a_layer_that_the_export_lacks_is_refused(tmp_path: Path) -> None:
    folder, kinds = encoder(tmp_path / "tiny"), ["Transformer", "Pooling", "Dense"]
    write(folder / "modules.json", [{"type": f"sentence_transformers.models.{k}"} for k in kinds])
    with pytest.raises(SetupError, match="'Dense'"):
        read_encoder_folder(folder)


def test_a_way_of_pooling_that_is_not_known_is_refused(tmp_path: Path) -> None:
    folder = encoder(tmp_path / "tiny", pooling="weightedmean_tokens")
    with pytest.raises(SetupError, match="weightedmean_tokens"):
        read_encoder_folder(folder)


def test_a_german_library_is_found_by_an_english_question(store: Store, tmp_path: Path) -> None:
    prompts = {"query": "query ", "passage": "passage "}
    text = embedder(encoder(tmp_path / "tiny", prompts=prompts), text_languages=("de", "en"))
    words = ["Regen", "Hund", "Tor"]
    watch(store, "talk", [[Said(word)] for word in words])
    rows = dict(zip(words, text.embed(words).tolist(), strict=True))
    with store.begin() as session:
        for row in [*session.scalars(select(MemoryRow)), *session.scalars(select(ClipRow))]:
            row.embedding, row.encoder = rows[row.text], text.name
        session.execute(update(VideoRow).values(models={"text": text.name}))
    view = MemoryView(scopes=(Scope(video="talk", last_clip=2),))
    retrievers = Retrievers(store, SearchTools(text), Settings())
    for word, said in (("dog", "Hund"), ("gate", "Tor"), ("rain", "Regen")):
        assert said in retrievers.search(view, Mode.VIDEO, word).evidence[0].text


def test_a_video_records_the_encoder_that_its_vectors_are_of(tmp_path: Path) -> None:
    folder = encoder(tmp_path / "tiny")
    profile = Profile(name="own", text=str(folder))
    assert models_used(profile)["text"] == embedder(folder).name == "onnx:tiny"
    assert models_used(Profile(name="own"))["text"] == "minilm"


def remote(url: str, **settings: Any) -> TextEmbedder:
    spec = EncoderSpec(base_url=url, **settings)
    profile = Profile(name="own", text="openai:tiny", encoder=spec, text_languages=("de",))
    return Toolbox(profile, Path("no-weights")).text


def test_an_endpoint_embeds_in_batches_each_text_once() -> None:
    with server(vectors) as (url, requests):
        text = remote(url, batch=2, query_prefix="query: ")
        rows = text.embed(["dog", "gate", "Hund", "dog"])
        assert requests == [["dog", "gate"], ["Hund"]]
        assert np.array_equal(rows, np.eye(3)[[0, 1, 0, 0]])
        assert np.array_equal(embed_queries(text, ["dog"]), rows[:1])
        assert requests[-1] == ["query: dog"]
        assert (text.name, text.dimensions, text.languages) == ("openai:tiny", 3, ("de",))
        assert text.embed([]).shape == (0, 3)
        assert np.isfinite(text.embed([""])).all()


def test_a_busy_endpoint_is_asked_again() -> None:
    statuses, busy = iter([429, 503]), {"error": {"message": "busy"}}

    def reply(texts: list[str]) -> tuple[int, Any]:
        status = next(statuses, 200)
        return (status, busy) if status != 200 else vectors(texts)

    with server(reply) as (url, requests):
        assert remote(url).embed(["dog"]).shape == (1, 3)
        assert len(requests) == 3


def test_vectors_go_to_the_texts_that_their_indices_name() -> None:
    def reply(texts: list[str]) -> tuple[int, Any]:
        status, content = vectors(texts)
        content["data"].reverse()
        return status, content

    with server() as (url, _):
        expected = remote(url).embed(["dog", "gate", "a red bike"])
    with server(reply) as (url, _):
        np.testing.assert_array_equal(remote(url).embed(["dog", "gate", "a red bike"]), expected)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["data"][0].update(index=1),
        lambda content: content["data"][0].update(embedding=None),
        lambda content: content["data"][0].update(embedding=["a", "b", "c"]),
        lambda content: content.update(data=None),
        lambda content: content.update(data=[None, None]),
        lambda content: content["data"].pop(),
        lambda content: content["data"][0].update(embedding=[1.0, 0.0]),
        lambda content: content["data"][0].update(embedding=[0.0, 0.0, 0.0]),
    ],
    ids=[
        *("index twice", "no vector", "words", "no data", "nothing"),
        *("one missing", "of two sizes", "zero"),
    ],
)
def test_a_malformed_reply_is_a_plain_error(change: Any) -> None:
    def reply(texts: list[str]) -> tuple[int, Any]:
        status, content = vectors(texts)
        change(content)
        return status, content

    with server(reply) as (url, _), pytest.raises(ModelError):
        remote(url).embed(["dog", "gate"])


def test_the_encoders_of_providers_are_chosen_in_one_line() -> None:
    openai, google = (
        Profile(name="p", text=name).text_endpoint
        for name in ("openai:text-embedding-3-small", "google_genai:gemini-embedding-001")
    )
    assert (openai.base_url, key_variable(openai)) == (None, "OPENAI_API_KEY")
    assert (google.base_url, key_variable(google)) == (GEMINI_URL, "GOOGLE_API_KEY")
    assert is_priced(openai)
    assert is_priced(google)


def test_a_key_is_named_where_missing_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TINY_KEY", raising=False)
    with server(lambda _: (401, {"error": {"message": "sk-secret is wrong"}})) as (url, _):
        with pytest.raises(SetupError, match="TINY_KEY"):
            remote(url, key="TINY_KEY").embed(["dog"])
        monkeypatch.setenv("TINY_KEY", "sk-secret")
        with pytest.raises(SetupError, match="check TINY_KEY") as refused:
            remote(url, key="TINY_KEY").embed(["dog"])
    assert "sk-secret" not in str(refused.value)
