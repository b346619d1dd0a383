"""Models that a profile names by their name on the hub are fetched, checked, and used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cli.main import app
from domain.errors import SetupError, WeightsMissing
from flows.ingest_video import models_used
from models.hub import ENDPOINT, FILES, HubModel
from models.profile import Profile, load_profile
from models.speech import FILES as WHISPER_FILES
from models.speech import whisper_folder
from models.text_embedding import read_encoder_folder
from models.toolbox import Toolbox
from services.health import check_chat, check_images, check_speech_model, check_text_model
from tests.contract.test_image_encoders import painted
from tests.support.hub_server import REVISION, hub
from tests.support.tiny_image_encoder import COLOURS, towers
from tests.support.tiny_text_encoder import encoder

PINNED = f"@{REVISION}"
NAME, WORDS = f"Someone/tiny-clip.v1{PINNED}", f"Someone/words{PINNED}"
SEEING = Profile(name="p", images=NAME)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A hub with an image-text model and a text encoder, and a file that nobody needs."""
    images = towers(tmp_path / "hub" / "images", family="siglip", inside="onnx")
    (images / "pytorch_model.bin").write_bytes(b"large")
    text = encoder(tmp_path / "hub" / "text", inside="onnx")
    with hub({NAME.removesuffix(PINNED): images, "Someone/words": text}) as (url, fetched):
        monkeypatch.setenv(ENDPOINT, url)
        yield fetched


def of_profile(profile: Profile) -> HubModel:
    (model,) = profile.hub_models
    return model


def test_an_image_text_model_is_fetched_once_and_ranks(served: list[str], tmp_path: Path) -> None:
    _, images = (Toolbox(SEEING, tmp_path / "weights").images for _ in range(2))
    assert images is not None
    assert sorted(served) == sorted(
        ["config.json", *(f"onnx/{name}" for name in FILES[:2]), *FILES[2:]]
    )
    rows = images.images([painted(colour) for colour in COLOURS])
    texts = np.stack([images.text(colour) for colour in COLOURS])
    assert (rows @ texts.T).argmax(axis=1).tolist() == [0, 1, 2]
    assert images.name == models_used(SEEING)["images"] == f"clip:Someone--tiny-clip.v1{PINNED}"
    assert images.close == pytest.approx(0.05), "config.json says that it is a SigLIP model"


def test_a_text_encoder_is_fetched_with_what_it_states(served: list[str], tmp_path: Path) -> None:
    profile = Profile(name="p", text=WORDS)
    text = Toolbox(profile, tmp_path / "weights").text
    assert np.allclose(text.embed(["Hund", "Tor"]) @ text.embed(["dog"])[0], [1, 0])
    assert text.name == models_used(profile)["text"] == f"onnx:Someone--words{PINNED}"
    assert "1_Pooling/config.json" in served
    (found,) = check_text_model(profile, tmp_path / "weights")
    assert found.ok


def test_what_was_fetched_is_on_record_and_shown(served: list[str], tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    lacking = check_images(SEEING, weights)
    assert (lacking.ok, lacking.found) == (False, f"{NAME} is not fetched")
    assert lacking.fix.startswith(
        f"homer models pull --profile {SEEING.name}, or put vision_model.onnx"
    )
    assert f" of huggingface.co/{NAME.partition('@')[0]} into" in lacking.fix
    assert not served
    record = of_profile(SEEING).fetch(weights)
    assert (record.licence, record.revision, len(record.digests)) == ("mit", REVISION, 5)
    found = check_images(SEEING, weights)
    assert found.ok
    assert found.found == f"{NAME} in {of_profile(SEEING).folder(weights)}, licence: mit"


@pytest.mark.usefixtures("served")
def test_a_file_that_changed_since_is_not_loaded(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    of_profile(SEEING).fetch(weights)
    (of_profile(SEEING).folder(weights) / "tokenizer.json").write_text("{}")
    with pytest.raises(WeightsMissing, match="not the one that was fetched"):
        _ = Toolbox(SEEING, weights).images
    assert not check_images(SEEING, weights).ok


@pytest.mark.parametrize("damaged", ["onnx/vision_model.onnx", "tokenizer.json"])
def test_a_file_other_than_the_hub_states_is_refused_with_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: str
) -> None:
    folder, weights = towers(tmp_path / "hub", inside="onnx"), tmp_path / "weights"
    with hub({NAME.removesuffix(PINNED): folder}, damaged=damaged) as (url, _):
        monkeypatch.setenv(ENDPOINT, url)
        with pytest.raises(WeightsMissing, match=f"{damaged} is not what the hub states"):
            of_profile(SEEING).fetch(weights)
    assert len(of_profile(SEEING).missing(weights)) == len(FILES)


def test_offline_it_says_where_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    weights = tmp_path / "weights"
    with pytest.raises(WeightsMissing, match=NAME) as failure:
        _ = Toolbox(SEEING, weights).images
    folder = weights / "images" / f"Someone--tiny-clip.v1{PINNED}"
    assert str(folder) in str(failure.value)
    assert "put vision_model.onnx, text_model.onnx, tokenizer.json" in str(failure.value)
    towers(folder)
    images = Toolbox(SEEING, weights).images
    assert images is not None, "files that were put there by hand are taken"
    assert "licence: not known" in check_images(SEEING, weights).found


@pytest.mark.parametrize("pinned", ["", f"@{'6' * 40}"])
def test_only_the_named_revision_is_fetched(served: list[str], tmp_path: Path, pinned: str) -> None:
    """Who takes over an account of the hub could give other files under the same name."""
    profile = Profile(name="p", text=f"Someone/words{pinned}")
    with pytest.raises(WeightsMissing, match=f'text = "{WORDS}"'):
        _ = Toolbox(profile, tmp_path / "weights").text
    assert served == []


def test_a_fetch_that_was_killed_leaves_nothing_that_counts_as_put_there_by_hand(
    served: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights, model = tmp_path / "weights", of_profile(SEEING)
    move = Path.replace

    def killed(source: Path, target: Path) -> Path:
        if target.name == "text_model.onnx":
            raise KeyboardInterrupt
        return move(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            model.fetch(weights)
    assert model.record(weights) is not None
    assert not check_images(SEEING, weights).ok
    served.clear()
    assert Toolbox(SEEING, weights).images is not None
    assert len(served) == 5, "all of it is fetched again"


def test_a_model_that_is_too_large_is_not_fetched(
    served: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.hub.MAX_BYTES", 10)
    with pytest.raises(WeightsMissing, match=r"GB large, and at most .* name a smaller one"):
        of_profile(SEEING).fetch(tmp_path / "weights")
    assert served == []


def test_the_outer_of_two_exports_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = encoder(encoder(tmp_path / "both"), inside="onnx")
    assert {"model.onnx", "onnx"} <= {path.name for path in both.iterdir()}
    assert read_encoder_folder(both).model == both / "model.onnx"
    with hub({"Someone/words": both}) as (url, fetched):
        monkeypatch.setenv(ENDPOINT, url)
        of_profile(Profile(name="p", text=WORDS)).fetch(tmp_path / "weights")
    assert "model.onnx" in fetched
    assert "onnx/model.onnx" not in fetched


@pytest.mark.parametrize(
    "name", ["tiny", "a/b/c", "http://a/b", "a b/c", "a--b/c", "a/b--c", "a/b@main", ""]
)
def test_name_that_is_neither_of_the_hub_nor_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "p.toml").write_text(f'base = "local"\nimages = "{name}"\n')
    with pytest.raises(SetupError, match="images"):
        load_profile(str(tmp_path / "p.toml"))


def test_a_folder_needs_no_prefix(tmp_path: Path) -> None:
    folder = towers(tmp_path / "tiny")
    for named in (str(folder), f"clip:{folder}"):
        profile = Profile(name="p", images=named)
        images = Toolbox(profile, tmp_path).images
        assert images is not None
        assert images.name == models_used(profile)["images"] == "clip:tiny"


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    ("used", "pulled", "said"),
    [
        (f"Nobody/nothing{PINNED}", (), "RepositoryNotFound"),
        (WORDS, (), "has no vision_model.onnx on the hub"),
        (
            NAME,
            ("Nobody/nothing",),
            "does not use the model Nobody/nothing: set `speech`, `text` or `image",
        ),
    ],
)
def test_the_command_reports_a_model_that_it_cannot_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, used: str, pulled: tuple[str, ...], said: str
) -> None:
    monkeypatch.setenv("HOMER_WEIGHTS", str(tmp_path / "weights"))
    monkeypatch.setattr("library.upkeep.pull_weights", lambda *_: [])
    (tmp_path / "p.toml").write_text(f'base = "local"\nimages = "{used}"\n')
    command = ["models", "pull", *pulled, "--profile", str(tmp_path / "p.toml")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code != 0
    assert said in str(done.exception) + done.output


@pytest.mark.usefixtures("served")
def test_command_lists_and_fetches_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMER_WEIGHTS", str(tmp_path / "weights"))
    (tmp_path / "p.toml").write_text(f'base = "local"\nimages = "{NAME}"\n')
    profile = ["--profile", str(tmp_path / "p.toml")]

    def homer(*words: str) -> str:
        done = CliRunner().invoke(app, ["models", *words])
        assert done.exit_code == 0, done.output
        return done.stdout

    def listed() -> str:
        (line,) = (one for one in homer(*profile).splitlines() if NAME in one)
        return line

    assert listed().split() == [NAME, "images", "missing", "0", "not", "known"]
    assert f"{NAME}: 5 files, licence: mit" in homer("pull", NAME, *profile)
    assert listed().split() == [NAME, "images", "present", "0", "mit"]


def test_speech_models_show_their_licence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, weights = tmp_path / "hub", tmp_path / "weights"
    folder.mkdir()
    for name in (*WHISPER_FILES, "vocabulary.txt", "README.md"):
        (folder / name).write_text(name)
    profile = Profile(name="p", speech=f"Someone/whisper-tiny{PINNED}")
    (lacking,) = check_speech_model(profile, weights)
    assert (lacking.ok, lacking.found) == (False, f"Someone/whisper-tiny{PINNED} is not fetched")
    with hub({"Someone/whisper-tiny": folder}, "apache-2.0") as (url, fetched):
        monkeypatch.setenv(ENDPOINT, url)
        ready = {whisper_folder(profile.speech, weights) for _ in range(2)}
    assert ready == {weights / "speech" / f"Someone--whisper-tiny{PINNED}"}
    assert sorted(fetched) == sorted([*WHISPER_FILES, "vocabulary.txt"])
    (found,) = check_speech_model(profile, weights)
    assert (found.ok, "licence: apache-2.0" in found.found) == (True, True)
    (ready.pop() / "model.bin").write_text("another")
    (changed,) = check_speech_model(profile, weights)
    assert not changed.ok
    with pytest.raises(WeightsMissing, match="not the one that was fetched"):
        whisper_folder(profile.speech, weights)


def test_a_name_that_faster_whisper_knows_is_a_model_of_the_hub() -> None:
    (model,) = Profile(name="p", speech=f"large-v3-turbo{PINNED}").hub_models
    assert model.name == f"mobiuslabsgmbh/faster-whisper-large-v3-turbo{PINNED}"
    assert model.need == "speech"
    assert load_profile("local").hub_models == ()


def test_a_language_model_that_is_not_fetched_is_missing(tmp_path: Path) -> None:
    checks = {one.what: one for one in check_chat(load_profile("vision"), tmp_path)}
    assert not checks["model of default"].ok
    fix = checks["model of default"].fix
    assert fix.startswith("homer models pull --profile vision, or put *.gguf, *mmproj*.gguf of ")
    assert "q4_k_m" not in fix
