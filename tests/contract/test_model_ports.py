"""Every adapter of a port keeps the same promises, with its real weights."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from domain.errors import ModelError, WeightsMissing
from models.ports import (
    Face,
    FaceEngine,
    Image,
    Reranker,
    ScreenReader,
    SpeakerEncoder,
    SpeechRecognizer,
    TextEmbedder,
    VoiceActivity,
)
from models.profile import load_profile
from models.toolbox import Toolbox
from store.home import Home
from tests.support.cached_models import CachedModels
from tests.support.full_suite import examples, in_full, sample
from tests.support.signals import frame_at, noise, samples_of, silence, slide

Shared = Callable[[str], Path]
WEIGHTS = Home.default().weights
SENTENCES = [
    "Anna fixed the bicycle in the garage.",
    "The bike was repaired by Anna.",
    "It rained all day in Oslo.",
    "a",
    "",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich 🚲",
    "word " * 600,
]


@pytest.fixture(scope="module")
def toolbox(toolbox: CachedModels) -> Toolbox:
    """The models themselves, whatever they were asked before."""
    return toolbox.anew


def toolbox_with(**changes: Any) -> Toolbox:
    return Toolbox(load_profile().model_copy(update=changes), WEIGHTS)


@pytest.fixture(scope="module", params=["insightface", "yunet_sface"])
def faces(request: pytest.FixtureRequest) -> FaceEngine:
    try:
        return toolbox_with(faces=request.param).faces
    except WeightsMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module", params=["minilm", "bge-small"])
def text(request: pytest.FixtureRequest) -> TextEmbedder:
    try:
        return toolbox_with(text=request.param).text
    except WeightsMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def people() -> tuple[list[Image], list[list[tuple[int, Any]]]]:
    """Frames with three people, and where each of them is."""
    folder = (Path(__file__).parents[2] / ".." / "shared" / "media").resolve()
    if not folder.exists():
        pytest.skip("the shared clips are not beside the repository")
    truth = defaultdict(list)
    with (folder / "msdwild_00001_faces.csv").open() as rows:
        for frame, _, who, x0, y0, x1, y1, *_ in csv.reader(rows):
            truth[int(frame)].append((int(who), (int(x0), int(y0), int(x1), int(y1))))
    rate, wanted = 25, (0, 100, 200, 300)
    frames = [frame_at(folder / "msdwild_00001.mp4", number / rate) for number in wanted]
    return frames, [truth[number] for number in wanted]


def overlap(a: tuple[int, ...], b: tuple[int, ...]) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    shared = max(0, width) * max(0, height)
    return shared / (sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)) - shared)


class TestFaces:
    def test_every_face_is_found_once_where_it_is(self, faces: FaceEngine, people: Any) -> None:
        for image, truth in zip(*people, strict=True):
            found = [face for face in faces.faces(image) if face.quality >= faces.min_quality]
            assert len(found) == len(truth)
            for _, box in truth:
                assert sum(overlap(face.box, box) > 0.5 for face in found) == 1

    def test_people_are_known_by_the_models_threshold(self, faces: FaceEngine, people: Any) -> None:
        seen: dict[int, list[Face]] = defaultdict(list)
        for image, truth in zip(*people, strict=True):
            for face in faces.faces(image):
                who = max(truth, key=lambda known: overlap(face.box, known[1]))[0]
                seen[who].append(face)
        means = {
            who: np.mean([face.vector for face in group], axis=0) for who, group in seen.items()
        }
        assert len(means) == 3
        for who, group in seen.items():
            for face in group:
                assert face.vector @ means[who] >= faces.same_person
                others = [face.vector @ mean for other, mean in means.items() if other != who]
                assert max(others) < faces.same_person

    def test_faces_are_well_formed(self, faces: FaceEngine, people: Any) -> None:
        image = people[0][0]
        height, width = image.shape[:2]
        found = faces.faces(image)
        assert [face.score for face in found] == sorted((f.score for f in found), reverse=True)
        for face in found:
            x0, y0, x1, y1 = face.box
            assert 0 <= x0 < x1 <= width
            assert 0 <= y0 < y1 <= height
            assert faces.min_score <= face.score <= 1
            assert face.quality > 0
            assert face.vector.dtype == np.float32
            assert np.linalg.norm(face.vector) == pytest.approx(1, abs=1e-5)

    def test_a_face_at_the_edge_keeps_its_box_inside(self, faces: FaceEngine, people: Any) -> None:
        _, (x0, y0, x1, y1) = people[1][0][0]
        cut = people[0][0][y0 - 60 : y1 + 60, (x0 + x1) // 2 - 25 : x1 + 90]
        for face in faces.faces(np.ascontiguousarray(cut)):
            assert face.box[0] >= 0
            assert face.box[2] <= cut.shape[1]

    def test_image_has_the_same_faces_in_any_company(self, faces: FaceEngine, people: Any) -> None:
        images = people[0][: examples(2, 4)]
        first = [_bits(faces.faces(image)) for image in images]
        with ThreadPoolExecutor(4) as pool:
            again = list(pool.map(lambda image: _bits(faces.faces(image)), reversed(images)))
        assert again[::-1] == first

    @pytest.mark.parametrize(
        ("height", "width"),
        sample([(1, 1), (8, 600)], [(1, 1), (8, 600), (15, 15), (40, 3000), (720, 1280)]),
    )
    def test_nobody_is_on_empty_images(self, faces: FaceEngine, height: int, width: int) -> None:
        assert faces.faces(np.full((height, width, 3), 90, np.uint8)) == []


def _bits(found: list[Face]) -> list[tuple[Any, ...]]:
    return [(face.box, face.score, face.quality, face.vector.tobytes()) for face in found]


class TestTextEmbeddings:
    def test_rows_are_unit_vectors_in_the_order_of_the_texts(self, text: TextEmbedder) -> None:
        rows = text.embed(SENTENCES)
        assert rows.shape == (len(SENTENCES), text.dimensions)
        assert rows.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)

    def test_meaning_counts_more_than_words(self, text: TextEmbedder) -> None:
        fixed, repaired, rain = text.embed(SENTENCES[:3])
        assert fixed @ repaired > fixed @ rain + 0.2

    def test_a_text_has_the_same_bits_in_any_company(self, text: TextEmbedder) -> None:
        rng = np.random.default_rng(7)
        words = ["the", "a", "man", "walks", "sits", "red", "cup", "phone", "then", "says", "okay"]
        texts = [" ".join(rng.choice(words, rng.integers(1, 40))) for _ in range(examples(8, 100))]
        together = text.embed(texts)
        alone = np.vstack([text.embed([one]) for one in texts])
        shuffled = rng.permutation(len(texts))
        assert np.array_equal(together, alone)
        assert np.array_equal(text.embed([texts[i] for i in shuffled]), together[shuffled])
        with ThreadPoolExecutor(4) as pool:
            parallel = np.vstack(list(pool.map(lambda one: text.embed([one]), texts)))
        assert np.array_equal(parallel, alone)

    def test_what_is_beyond_the_limit_is_not_read(self, text: TextEmbedder) -> None:
        long, longer = text.embed(["word " * 300, "word " * 300 + "bicycle"])
        assert np.array_equal(long, longer)

    def test_llama_index_can_use_it(self, text: TextEmbedder) -> None:
        from models.text_embedding import as_llama_index

        wrapped, expected = as_llama_index(text), text.embed(SENTENCES[:2])
        assert np.array_equal(wrapped.get_text_embedding_batch(SENTENCES[:2]), expected)
        assert np.array_equal(wrapped.get_query_embedding(SENTENCES[0]), expected[0])
        assert wrapped.model_name == text.name


@pytest.fixture(scope="module")
def reranker(toolbox: Toolbox) -> Reranker:
    found = toolbox.reranker
    assert found is not None
    return found


class TestReranker:
    question = "Who repaired the bicycle?"

    def test_the_passage_that_answers_comes_first(self, reranker: Reranker) -> None:
        scores = reranker.scores(self.question, SENTENCES[:3])
        assert scores.shape == (3,)
        assert np.all((scores > 0) & (scores < 1))
        assert int(np.argmax(scores)) in (0, 1)
        assert scores[2] < 0.1

    def test_a_score_does_not_depend_on_the_other_passages(self, reranker: Reranker) -> None:
        together = reranker.scores(self.question, SENTENCES)
        alone = [reranker.scores(self.question, [passage])[0] for passage in SENTENCES]
        assert np.array_equal(together, np.array(alone, np.float32))


@pytest.fixture(scope="module")
def speech(toolbox: Toolbox) -> SpeechRecognizer:
    return toolbox.speech


class TestSpeech:
    def test_words_are_heard_in_time(self, speech: SpeechRecognizer, shared_media: Shared) -> None:
        samples = samples_of(shared_media("mie_sample.mp4"))
        heard = speech.transcribe(samples)
        assert "Welcome back to Boulder" in " ".join(part.text for part in heard)
        assert {part.language for part in heard} == {"en"}
        end_ms, ends = len(samples) // 16, [0]
        for part in heard:
            assert 0 <= part.words[0].start_ms < part.words[-1].end_ms <= end_ms
            assert 0 < part.confidence <= 1
            for word in part.words:
                assert word.start_ms >= ends[-1] - 1
                assert word.start_ms <= word.end_ms <= end_ms
                ends.append(word.start_ms)

    @pytest.mark.full
    def test_the_same_samples_give_the_same_words_whatever_came_before(
        self, speech: SpeechRecognizer, shared_media: Shared
    ) -> None:
        first = samples_of(shared_media("mie_sample.mp4"), 0, 4)
        other = samples_of(shared_media("msdwild_00001.mp4"), 0, 4)
        heard = speech.transcribe(first)
        speech.transcribe(other)
        assert speech.transcribe(first) == heard

    @pytest.mark.full
    def test_a_decoder_that_repeats_itself_does_not_lose_what_was_said(
        self, speech: SpeechRecognizer, shared_media: Shared
    ) -> None:
        heard = speech.transcribe(samples_of(shared_media("visualvoice_interview.mp4")))
        assert "you want to interview me" in " ".join(part.text for part in heard)

    @pytest.mark.parametrize(
        "samples", [silence(5), silence(0.05), *map(in_full, (noise(5), silence(0), noise(0.1)))]
    )
    def test_nobody_speaks(self, speech: SpeechRecognizer, samples: Any) -> None:
        assert speech.transcribe(samples) == []

    @pytest.mark.full
    def test_one_language_can_be_asked_for(self, shared_media: Shared) -> None:
        samples = samples_of(shared_media("mie_sample.mp4"), 0, 4)
        heard = toolbox_with(languages=("fr", "en")).speech.transcribe(samples)
        assert {part.language for part in heard} == {"en"}


@pytest.fixture(scope="module")
def activity(toolbox: Toolbox) -> VoiceActivity:
    return toolbox.activity


class TestActivity:
    def test_speech_between_silences(self, activity: VoiceActivity, shared_media: Shared) -> None:
        voice = samples_of(shared_media("mie_sample.mp4"), 0.5, 3.5)
        spans = activity.spans(np.concatenate([silence(2), voice, silence(2)]))
        assert spans
        assert 1_700 <= spans[0][0] <= 3_000
        assert 4_000 <= spans[-1][1] <= 5_500
        edges = [edge for span in spans for edge in span]
        assert (edges, len(set(edges))) == (sorted(edges), len(edges))

    @pytest.mark.parametrize("samples", [silence(0), silence(3), noise(3)])
    def test_nobody_speaks(self, activity: VoiceActivity, samples: Any) -> None:
        assert activity.spans(samples) == []


@pytest.fixture(scope="module")
def speaker(toolbox: Toolbox) -> SpeakerEncoder:
    return toolbox.speaker


class TestSpeaker:
    def test_voices_have_a_threshold(self, speaker: SpeakerEncoder, shared_media: Shared) -> None:
        host, clip = shared_media("mie_sample.mp4"), shared_media("msdwild_00001.mp4")
        first, again = (speaker.embed(samples_of(host, *span)) for span in ((0.5, 3), (3.5, 6)))
        other = speaker.embed(samples_of(clip, 14.3, 18))
        assert first.shape == (256,)
        assert np.linalg.norm(first) == pytest.approx(1, abs=1e-5)
        assert first @ again >= speaker.same_speaker > first @ other

    def test_loudness_is_not_a_voice(self, speaker: SpeakerEncoder, shared_media: Shared) -> None:
        voice = samples_of(shared_media("mie_sample.mp4"), 0.5, 3)
        assert speaker.embed(voice) @ speaker.embed(voice * 0.25) > 0.98

    def test_the_shortest_stretch(self, speaker: SpeakerEncoder) -> None:
        assert np.isfinite(speaker.embed(noise(0.4))).all()
        with pytest.raises(ModelError, match=r"0\.4 s"):
            speaker.embed(noise(0.39))


@pytest.fixture(scope="module")
def screen(toolbox: Toolbox) -> ScreenReader:
    return toolbox.screen


class TestScreen:
    def test_lines_are_read_in_order(self, screen: ScreenReader) -> None:
        image = slide("Quarterly report", "Sales: 42 percent", "Paris Office")
        lines = screen.read(image)
        found = [line.text for line in lines]
        assert found == ["Quarterly report", "Sales: 42 percent", "Paris Office"]
        for line in lines:
            x0, y0, x1, y1 = line.box
            assert 0 <= x0 < x1 <= image.shape[1]
            assert 0 <= y0 < y1 <= image.shape[0]
            assert 0.5 <= line.score <= 1
        assert lines[0].box[1] < lines[1].box[1] < lines[2].box[1]

    @pytest.mark.parametrize(("height", "width"), sample([(1, 1)], [(1, 1), (540, 960)]))
    def test_nothing_to_read(self, screen: ScreenReader, height: int, width: int) -> None:
        assert screen.read(np.full((height, width, 3), 200, np.uint8)) == []

    @pytest.mark.full
    def test_its_threads_sleep_while_they_wait(self, screen: Any) -> None:
        screen.read(slide("Read once"))
        for part in (screen._engine.text_det, screen._engine.text_rec):
            options = part.session.session.get_session_options()
            assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
            assert not options.enable_cpu_mem_arena

    @pytest.mark.full
    def test_it_says_nothing_and_reads_the_same_again(
        self, screen: ScreenReader, capfd: pytest.CaptureFixture[str]
    ) -> None:
        image = slide("Exit 14 B", "No parking")
        first = screen.read(image)
        screen.read(slide("Something else"))
        assert screen.read(image) == first
        spoken = capfd.readouterr()
        assert (spoken.out, spoken.err) == ("", "")
