"""The models of a profile, each loaded on first use."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from domain.errors import HomerError
from models.chat import Replay, Sink, StructuredChat
from models.devices import speech_device
from models.endpoint import ChatFactory, Endpoint, llama_url, make_chat_model
from models.hub import hub_language_model, is_hub_name
from models.ports import (
    FaceEngine,
    ImageEncoder,
    ObjectDetector,
    Reranker,
    ScreenReader,
    SoundClassifier,
    SpeakerEncoder,
    SpeechRecognizer,
    TextEmbedder,
    VoiceActivity,
)
from models.profile import NO_MODEL, Profile
from models.sentences import SentenceParser
from models.specs import IN_PROCESS, ChatSpec
from models.speech import SileroActivity, WeSpeakerEncoder, WhisperRecognizer, whisper_folder
from models.text_embedding import (
    CrossEncoderReranker,
    EncoderFiles,
    OnnxTextEmbedder,
    Pooling,
    read_encoder_folder,
)
from models.text_endpoint import EndpointTextEmbedder
from models.weights import load_manifest, verified_folder
from models.yamnet import YamnetClassifier

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class Toolbox:
    """All models of one profile, loaded on first use and cached.

    Adapters with a heavy runtime are imported with their model: most commands need few of them.

    Args:
        profile: names the models.
        weights: the folder of the model files, which are checked before they are loaded.
        chat_factory: makes LangChain chat models; another one in tests.

    Every property but ``sentences`` raises ``WeightsMissing``, with what to do, where its files are
    not there.
    """

    def __init__(
        self, profile: Profile, weights: Path, chat_factory: ChatFactory = make_chat_model
    ) -> None:
        self.profile = profile
        self.weights = weights
        self._chat_factory = chat_factory
        self._endpoints: dict[str, Endpoint] = {}

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        """Pickle what it is made of: the copy loads models of its own, as in another process."""
        return type(self), (self.profile, self.weights, self._chat_factory)

    @property
    def recipe(self) -> object:
        """What the models are made of: toolboxes with equal recipes have the same models."""
        return type(self), self.profile, self.weights

    @cached_property
    def speech(self) -> SpeechRecognizer:
        name, device = self.profile.speech, speech_device(self.profile.device)
        languages, known = self.profile.languages, self.profile.speech_languages
        if name in load_manifest():
            folder = verified_folder(self.weights, name)
        else:
            folder = whisper_folder(name, self.weights)
        return WhisperRecognizer(
            self.profile.speech_name, folder, languages, known=known, device=device
        )

    @cached_property
    def activity(self) -> VoiceActivity:
        return SileroActivity()

    @cached_property
    def sounds(self) -> SoundClassifier | None:
        """Kinds of sound; None where the profile has no such model, or it cannot run here."""
        name = self.profile.sound_model
        return None if name == NO_MODEL else YamnetClassifier(verified_folder(self.weights, name))

    @cached_property
    def faces(self) -> FaceEngine:
        from models.faces import InsightFaceEngine, NamedPackEngine, YunetSfaceEngine

        name, _, pack = self.profile.faces.partition(":")
        if pack:
            return NamedPackEngine(pack, self.weights, device=self.profile.device)
        folder = verified_folder(self.weights, name)
        if self.profile.faces == "yunet_sface":
            return YunetSfaceEngine(folder, device=self.profile.device)
        return InsightFaceEngine(folder, device=self.profile.device)

    @cached_property
    def speaker(self) -> SpeakerEncoder:
        folder = verified_folder(self.weights, self.profile.speaker)
        return WeSpeakerEncoder(folder, self.profile.device)

    @cached_property
    def screen(self) -> ScreenReader:
        """Text on images."""
        from models.objects_and_texts import RapidOcrReader

        return RapidOcrReader(self.profile.device)

    @cached_property
    def objects(self) -> ObjectDetector | None:
        """Things on images; None where the profile has no detector."""
        from models.objects_and_texts import YoloxDetector

        name = self.profile.objects
        if name == NO_MODEL:
            return None
        return YoloxDetector(verified_folder(self.weights, name), device=self.profile.device)

    @cached_property
    def sentences(self) -> SentenceParser:
        """The grammar and the named entities of sentences; what needs them loads the files."""
        return SentenceParser(self.weights, self.profile.sentences)

    @cached_property
    def text(self) -> TextEmbedder:
        """Sentence embeddings; ``as_llama_index`` makes them a llama-index embedding."""
        return self._text_encoder(self.profile)

    def encoder(self, name: str) -> TextEmbedder | None:
        """Load the text encoder of a name in the store, which another profile may have.

        None if it is of no profile of ``homer.toml`` and not one that comes with Homer.
        """
        profile = self.profile.with_encoder(name)
        return None if profile is None else self._text_encoder(profile)

    def _text_encoder(self, profile: Profile) -> TextEmbedder:
        if profile.uses_endpoint:
            return EndpointTextEmbedder(
                profile.text_endpoint, profile.encoder, profile.search_languages, profile.name
            )
        name, made_for = profile.text_name, profile.search_languages
        model, spec = profile.text, profile.encoder
        own, hub = profile.text_folder, profile.text_hub
        if hub:
            own = hub.ready_folder(self.weights)
        if own:
            files = read_encoder_folder(own).with_prefixes(spec.query_prefix, spec.passage_prefix)
        else:
            folder = verified_folder(self.weights, model)
            pooling: Pooling = "first" if model == "bge-small" else "mean"
            files = EncoderFiles(folder / "model.onnx", folder / "tokenizer.json", pooling)
        # Others may quantise activations over the whole batch, as bge-small does.
        return OnnxTextEmbedder(
            name, files, batch=32 if name == "minilm" else 1, languages=made_for
        )

    @cached_property
    def reranker(self) -> Reranker | None:
        """Relevance of passages to a query; None where the profile has no reranker."""
        name = self.profile.reranker
        return CrossEncoderReranker(name, verified_folder(self.weights, name)) if name else None

    @cached_property
    def images(self) -> ImageEncoder | None:
        """Image-text embeddings; None where the profile names no such model."""
        from models.image_text import ImageTextEncoder

        folder, hub = self.profile.images_folder, self.profile.images_hub
        if hub:
            folder = hub.ready_folder(self.weights)
        return ImageTextEncoder(folder, self.profile.device) if folder else None

    def of_library(self, text: str | None, images: str | None) -> Toolbox:
        """Return these models with the encoders, by name, that made the vectors of a library.

        One that is of no profile of ``homer.toml`` stays as it is, and cannot search there.
        """
        profile = self.profile
        if text not in (None, profile.text_name):
            profile = profile.with_encoder(text) or profile
        if profile.images and images not in (None, profile.image_model):
            profile = profile.with_image_encoder(images) or profile
        return self if profile is self.profile else Toolbox(profile, self.weights)

    def chat(
        self,
        role: str,
        sink: Sink | None = None,
        replay: Replay | None = None,
        *,
        live: bool = False,
    ) -> StructuredChat:
        """Return the language model of a role (``writer``, ``reasoner``, ...).

        Args:
            role: as in the profile's ``[chat.ROLE]``; ``[chat.default]`` stands for others.
            replay: serves recorded calls instead of making any.
            live: with ``replay``, calls that the record lacks are made.

        Raises:
            SetupError: the profile has no language model for the role.
        """
        spec = self.profile.chat_for(role)
        key = spec.model_dump_json()
        if key not in self._endpoints:
            self._endpoints[key] = Endpoint(spec, self._make_chat)
        return StructuredChat(self._endpoints[key], self.profile.name, sink, replay, live=live)

    def _make_chat(self, spec: ChatSpec, temperature: float | None) -> BaseChatModel:
        if spec.provider == IN_PROCESS:
            if is_hub_name(spec.model_name):
                hub = hub_language_model(spec.model_name, sees=spec.images)
                files = hub.file_paths(self.weights)
            else:
                files = [verified_folder(self.weights, spec.model_name) / "model.gguf"]
            spec = spec.model_copy(update={"base_url": llama_url(*files)})
        return self._chat_factory(spec, temperature)


Ahead = Literal["text", "reranker"]
"""What can be loaded ahead."""


@contextmanager
def preloading(toolbox: Toolbox, names: Sequence[Ahead]) -> Iterator[None]:
    """Load these models of the toolbox in a thread, in this order, while the body runs.

    Using one of them meanwhile waits for it, and for none that comes after it.
    """
    # What the models are made with: importing does not let other threads go on, and two threads
    # that import packages of one circle may see halves of them. So the thread imports none of it.
    import onnxruntime  # noqa: F401

    def load() -> None:
        # One that cannot be loaded raises when it is used, if ever.
        with suppress(HomerError, OSError):
            for name in names:
                getattr(toolbox, name)

    thread = threading.Thread(target=load, name="models-ahead")
    thread.start()
    try:
        yield
    finally:
        thread.join()
