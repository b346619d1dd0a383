"""Profiles: which model does what, and with which settings, as data (TOML)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from domain.asking import Calibration
from domain.base import Frozen, first_problem
from domain.errors import NotFound, SetupError
from domain.settings import MemorySettings, Settings
from models.devices import AUTO, DEVICE_PATTERN
from models.hub import (
    HUB_NAME,
    HubModel,
    folder_name,
    hub_image_model,
    hub_language_model,
    is_hub_name,
    name_of,
)
from models.keys_and_packages import LITERT
from models.sentences import ENGLISH, PIPELINE
from models.specs import (
    IN_PROCESS,
    OPENAI,
    ChatSpec,
    EncoderSpec,
    Price,
    bundled_profiles,
    read_toml,
    resolve_table,
    with_prices,
)
from models.speech import hub_speech_model, is_path, model_name
from models.text_embedding import hub_text_model
from models.weights import load_manifest

DEFAULT = "local"
ENVIRONMENT = "HOMER_PROFILE"
GEMINI = "google_genai"
GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta/openai"
"""Where Google's embeddings speak OpenAI's protocol."""

NO_MODEL = "none"
"""What the record of a video says of a port for which it had no model."""

READER = {"max_tokens": 160, "timeout_s": 300.0, "temperature": 0.0, "images": False}
"""How a reader in this process is called: a processor takes minutes for what a server does."""
BUNDLED_TEXT_MODELS = ("minilm", "bge-small")

LanguageCode = Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]
PipelineName = Annotated[str, Field(pattern=r"^([/.~].*|[A-Za-z_][A-Za-z0-9_]*)$")]


class OtherEncoder(Frozen):
    """The text encoder of another profile of ``homer.toml``, for rows that it made vectors of."""

    text: str
    text_languages: tuple[str, ...] = ()
    encoder: EncoderSpec = EncoderSpec()


class Profile(Frozen):
    """A named set of models. Names of models are those of the weights manifest where it has one."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: str
    about: str = ""
    device: str = Field(
        default=AUTO,
        pattern=DEVICE_PATTERN,
        description="what models of images, voices and speech run on: auto, cpu, cuda, cuda:1, ...",
    )
    speech: str = Field(
        default="whisper-base",
        min_length=1,
        description="whisper-base, a folder, OWNER/NAME@REVISION of the hub, or a model that "
        "faster-whisper knows (large-v3-turbo@REVISION)",
    )
    languages: tuple[str, ...] = Field(
        default=(), description="spoken languages to choose among (ISO 639-1); empty: any"
    )
    activity: Literal["silero"] = "silero"
    sounds: Literal["yamnet", "none"] = "yamnet"
    faces: str = Field(
        default="insightface",
        pattern=r"^(insightface(:.+)?|yunet_sface)$",
        description="insightface, yunet_sface, or insightface:NAME or :FOLDER, a pack of its own",
    )
    speaker: Literal["wespeaker"] = "wespeaker"
    screen: Literal["rapidocr"] = "rapidocr"
    objects: Literal["yolox-nano", "none"] = "yolox-nano"
    text: str = Field(
        default="minilm",
        pattern=rf"^(minilm|bge-small|(openai|google_genai):.+|[/.~].*|{HUB_NAME})$",
        description="minilm, bge-small, a folder (/..., ./..., ~/...), OWNER/NAME@REVISION of the "
        "hub, openai:NAME or google_genai:NAME",
    )
    text_languages: tuple[str, ...] = Field(
        default=(), description="languages of a text model that is not of the manifest"
    )
    encoder: EncoderSpec = EncoderSpec()
    other_encoders: tuple[OtherEncoder, ...] = Field(
        default=(), description="of other profiles; set when the profile is loaded"
    )
    other_images: tuple[str, ...] = Field(
        default=(), description="image-text models of other profiles, likewise"
    )
    sentences: dict[LanguageCode, PipelineName] = Field(
        default={},
        description="spaCy pipelines by language, each a folder (/..., ./..., ~/...) or an "
        "installed package; one for English comes with Homer",
    )
    reranker: Literal["reranker"] | None = "reranker"
    images: str | None = Field(
        default=None,
        pattern=rf"^(clip:.+|[/.~].*|{HUB_NAME})$",
        description="a folder with a CLIP or SigLIP model in ONNX (/..., ./..., ~/..., clip:...), "
        "or OWNER/NAME@REVISION of the hub; none comes with Homer",
    )
    reader: str | None = Field(
        default=None,
        pattern=rf"^(none|[a-z0-9.-]+|{HUB_NAME})$",
        description="a language model in this process (GGUF) that words answers from what rules "
        "find: one of the manifest, OWNER/NAME@REVISION of the hub, or none",
    )
    writer: Literal["local", "llm"] = "local"
    reasoner: Literal["local", "llm"] = "local"
    chat: dict[str, ChatSpec] = Field(
        default={}, description="by role; 'default' stands for others"
    )
    settings: Settings = Settings()
    calibration: Calibration = Calibration()

    @model_validator(mode="before")
    @classmethod
    def _with_reader(cls, data: Any) -> Any:
        """Add the language model of the reader, where it is named in short."""
        chat = data.get("chat", {}) if isinstance(data, dict) else None
        if not isinstance(chat, dict) or data.get("reader") in (None, NO_MODEL):
            return data
        spec = {"model": f"{IN_PROCESS}:{data['reader']}", **READER}
        return {**data, "chat": {"reader": spec, **chat}}

    @property
    def answering(self) -> Literal["local", "reader", "llm"]:
        """Who answers: rules, rules whose findings one call of a model words, or a model."""
        reads = self.reasoner == "local" and "reader" in self.chat
        return "reader" if reads else self.reasoner

    @property
    def images_hub(self) -> HubModel | None:
        """The image-text model, if it is one of the hub."""
        return hub_image_model(self.images) if self.images and is_hub_name(self.images) else None

    @property
    def images_folder(self) -> Path | None:
        """The folder of the image-text model, if it is one of the user's own."""
        if self.images is None or self.images_hub:
            return None
        return Path(self.images.removeprefix("clip:")).expanduser()

    @property
    def images_name(self) -> str:
        """How the image-text model is called in the store."""
        if self.images is None:
            return NO_MODEL
        folder = self.images_folder
        return name_of(folder.name if folder else folder_name(self.images))

    @property
    def image_model(self) -> str:
        """The name of the image-text model; "" without one."""
        return self.images_name if self.images else ""

    @property
    def hub_models(self) -> tuple[HubModel, ...]:
        """The models of the hub that this profile uses.

        Raises:
            WeightsMissing: There is no speech model of that name.
        """
        is_own = self.speech in load_manifest() or is_path(self.speech)
        speech = None if is_own else hub_speech_model(self.speech)
        used = (speech, self.text_hub, self.images_hub)
        readers = (
            hub_language_model(spec.model_name, sees=spec.images)
            for spec in self.chat.values()
            if spec.provider == IN_PROCESS and is_hub_name(spec.model_name)
        )
        return tuple(dict.fromkeys(model for model in (*used, *readers) if model))

    @property
    def sound_model(self) -> str:
        """The model of sounds in use: none where what it runs in is not installed."""
        return self.sounds if LITERT.installed else NO_MODEL

    @property
    def search_languages(self) -> tuple[str, ...]:
        """The languages that the text model was made for; empty where that is not stated."""
        known = load_manifest()
        made_for = known[self.text].languages if self.text in known else ()
        return self.text_languages or made_for

    @property
    def text_folder(self) -> Path | None:
        """The folder of the text model, if it is one of the user's own."""
        return Path(self.text).expanduser() if self.text.startswith(("/", ".", "~")) else None

    @property
    def text_hub(self) -> HubModel | None:
        return hub_text_model(self.text) if is_hub_name(self.text) else None

    @property
    def text_endpoint(self) -> ChatSpec:
        """The endpoint of a text model PROVIDER:NAME, as those of language models are called."""
        spec, google = self.encoder, self.text.startswith(f"{GEMINI}:")
        return ChatSpec(
            model=self.text,
            base_url=spec.base_url or (GEMINI_URL if google else None),
            key="GOOGLE_API_KEY" if google and spec.key is None else spec.key,
            timeout_s=spec.timeout_s,
            retries=spec.retries,
            price=spec.price,
        )

    @property
    def uses_endpoint(self) -> bool:
        """Whether the text encoder is behind an endpoint, which counts tokens."""
        return self.text.startswith((f"{OPENAI}:", f"{GEMINI}:"))

    @property
    def text_name(self) -> str:
        """How the text model is called in the store."""
        if folder := self.text_folder:
            return f"onnx:{folder.resolve().name}"
        return f"onnx:{folder_name(self.text)}" if self.text_hub else self.text

    def with_encoder(self, name: str) -> Profile | None:
        """Return this profile with the text encoder of a name in the store; None if not known."""
        own = OtherEncoder(text=self.text, text_languages=self.text_languages, encoder=self.encoder)
        bundled = (OtherEncoder(text=one) for one in BUNDLED_TEXT_MODELS)
        changed = (
            self.model_copy(
                update={
                    "text": other.text,
                    "text_languages": other.text_languages,
                    "encoder": other.encoder,
                }
            )
            for other in (own, *self.other_encoders, *bundled)
        )
        return next((profile for profile in changed if profile.text_name == name), None)

    def with_image_encoder(self, name: str) -> Profile | None:
        """Return this profile with the image-text model of a name in the store; None if unknown."""
        known = filter(None, (self.images, *self.other_images))
        changed = (self.model_copy(update={"images": images}) for images in known)
        return next((profile for profile in changed if profile.images_name == name), None)

    @property
    def speech_name(self) -> str:
        """How the speech model is called in the store."""
        return self.speech if self.speech in load_manifest() else model_name(self.speech)

    @property
    def speech_languages(self) -> tuple[str, ...]:
        """The languages that the speech model knows; empty where that is not told."""
        known = load_manifest()
        return known[self.speech].languages if self.speech in known else ()

    @property
    def weights(self) -> tuple[str, ...]:
        """The models of the manifest that this profile uses, each once."""
        faces = None if ":" in self.faces else self.faces
        perceived = [faces, self.speaker, self.objects, self.sounds]
        speech = self.speech if self.speech in load_manifest() else None
        text = self.text if self.text in load_manifest() else None
        english = None if ENGLISH in self.sentences else PIPELINE
        local = [speech, text, self.reranker, english, *perceived]
        llama = [spec.model_name for spec in self.chat.values() if spec.provider == IN_PROCESS]
        named = (name for name in [*local, *llama] if name and name != NO_MODEL)
        used = (name for name in named if not is_hub_name(name))
        return tuple(dict.fromkeys(used))

    @property
    def in_process(self) -> bool:
        """Whether a language model that this profile asks runs in this process."""
        return any(spec.provider == IN_PROCESS for spec in self.chat.values())

    @property
    def shown_clips(self) -> MemorySettings:
        """The memory settings, with no more to show of a clip than its writer can look at.

        Raises:
            SetupError: its writer is to be shown videos and cannot watch any.
        """
        memory = self.settings.memory
        spec = self.chat_for("writer") if self.writer == "llm" else None
        if spec is None or not spec.images:
            return memory.model_copy(update={"clip_view": "keyframes"})
        if memory.clip_view == "video" and not spec.video:
            raise SetupError(
                f"the profile {self.name!r} shows clips as video, and {spec.model} is not said to "
                f"watch any: 'homer doctor --profile {self.name}' finds out; then set video = true "
                'beside its model, or clip_view = "frames" in [settings.memory]'
            )
        return memory

    def chat_for(self, role: str) -> ChatSpec:
        """Return the language model of a role, else the one called ``default``.

        Raises:
            SetupError: the profile has neither.
        """
        spec = self.chat.get(role) or self.chat.get("default")
        if spec is None:
            raise SetupError(
                f"the profile {self.name!r} has no language model for the role {role!r}: use "
                f"--profile gemini, openai or ollama, or add [chat.{role}] to the profile"
            )
        return spec


def load_profile(name_or_path: str | None = None, home_config: Path | None = None) -> Profile:
    """Load a profile, else ``$HOMER_PROFILE``'s, else ``homer.toml``'s, else ``local``.

    A name is one of the profiles that come with Homer or of ``[profiles.NAME]`` in ``homer.toml``,
    which may also change a bundled profile of that name. A path (``*.toml``) is read as it is. Both
    may say ``base = "NAME"`` to change only some things of another profile. ``[prices]`` of
    ``homer.toml`` says what models cost, where a profile does not.

    Args:
        name_or_path: a profile's name or a TOML file; None to look further.
        home_config: the home's ``homer.toml``, which need not exist.

    Raises:
        NotFound: there is no such profile.
        SetupError: a profile or ``homer.toml`` cannot be read; says where it is wrong.
    """
    config = _config(home_config)
    wanted = name_or_path or os.environ.get(ENVIRONMENT) or config.profile or DEFAULT
    name = Path(wanted).stem if wanted.endswith(".toml") else wanted
    found = with_prices(_validate(name, resolve_table(wanted, config.profiles, ())), config.prices)
    # The text encoders of the other profiles in ``homer.toml``.
    known = {
        other.text_name: OtherEncoder(
            text=other.text, text_languages=other.text_languages, encoder=other.encoder
        )
        for other in _profiles_of(config)
    }
    other_encoders = tuple(one for text, one in known.items() if text != found.text_name)
    by_name = {other.images_name: other.images for other in _profiles_of(config) if other.images}
    others = {
        "other_encoders": other_encoders,
        "other_images": tuple(
            images for name, images in by_name.items() if name != found.image_model
        ),
    }
    found = found.model_copy(update=others)
    return found if home_config is None else _with_calibration(found, home_config)


def _profiles_of(config: _Config) -> Iterator[Profile]:
    """Yield the profiles in ``homer.toml`` by name, except invalid ones."""
    for name in sorted(config.profiles):
        with suppress(SetupError, NotFound):
            yield _validate(name, resolve_table(name, config.profiles, ()))


def calibration_file(home_config: Path, profile: str) -> Path:
    """Return the file with the calibration that was fitted for a profile in this home."""
    return home_config.parent / "calibration" / f"{profile}.json"


def _with_calibration(profile: Profile, home_config: Path) -> Profile:
    """Return the profile with the calibration that was fitted in this home, if any."""
    path = calibration_file(home_config, profile.name)
    if not path.is_file():
        return profile
    try:
        fitted = Calibration.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise SetupError(
            f"{path} is no calibration: delete it, or make it anew with 'homer eval calibrate'"
        ) from error
    return profile.model_copy(update={"calibration": fitted})


class _Config(BaseModel):
    """What ``homer.toml`` may say about profiles; other programs' tables are left alone."""

    profile: str | None = None
    profiles: dict[str, dict[str, Any]] = {}
    prices: dict[str, Price] = {}


def _config(path: Path | None) -> _Config:
    table = read_toml(path) if path is not None and path.is_file() else {}
    try:
        return _Config.model_validate(table)
    except ValidationError as error:
        raise SetupError(f"homer.toml is wrong at {first_problem(error)}") from error


def profile_names(home_config: Path | None = None) -> tuple[str, ...]:
    """Return the names of all profiles: Homer's own and those of ``homer.toml``.

    Raises:
        SetupError: ``homer.toml`` cannot be read; says where it is wrong.
    """
    return tuple(sorted({*bundled_profiles(), *_config(home_config).profiles}))


def _validate(name: str, table: dict[str, Any]) -> Profile:
    try:
        return Profile.model_validate({**table, "name": name})
    except ValidationError as error:
        raise SetupError(f"the profile {name!r} is wrong at {first_problem(error)}") from error
