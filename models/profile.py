"""Profiles: which model does what, and with which settings, as data (TOML)."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError

from domain.asking import Calibration
from domain.base import Frozen
from domain.errors import NotFound, SetupError
from domain.settings import Settings
from models.manifest import weights_named

BUNDLED = Path(__file__).with_name("profiles")
DEFAULT = "local"
ENVIRONMENT = "HOMER_PROFILE"
IN_PROCESS = "llama"
"""The provider of language models that run in this process."""

NO_MODEL = "none"
"""What the record of a video says of a port for which it had no model."""

Structure = Literal["json_schema", "tools", "text"]
"""How a server can be held to a schema, strongest first."""


DAY_S = 86_400
"""No call takes longer than a day."""


class Price(Frozen, allow_inf_nan=False):
    """US dollars a million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)


class ChatSpec(Frozen):
    """A language model in one role.

    ``model`` is what LangChain's ``init_chat_model`` takes (``openai:gpt-...``), or ``llama:NAME``
    for a GGUF model of the weights manifest, run in this process.
    """

    # What is written in the wrong place may be a key.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    model: str = Field(pattern=r"^[a-z_]+:.+$")
    base_url: str | None = Field(default=None, pattern=r"^https?://")
    key: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_0-9]*$",
        description="the environment variable with the API key, or its name in the keyring",
    )
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: PositiveInt = 4096
    max_characters: PositiveInt = Field(
        default=100_000, description="of a reply; a longer one is not read to its end"
    )
    timeout_s: float = Field(default=120.0, gt=0, le=DAY_S)
    retries: int = Field(default=2, ge=0, description="after the first try, on 429 and 5xx")
    structure: Structure = "json_schema"
    images: bool = Field(default=True, description="whether it can look at images")
    price: Price | None = None
    at_once: PositiveInt | None = Field(
        default=None, description="calls at a time from this machine; None: as many as are asked"
    )

    @property
    def provider(self) -> str:
        """The part of ``model`` before the colon."""
        return self.model.partition(":")[0]

    @property
    def model_name(self) -> str:
        """The part of ``model`` after the colon."""
        return self.model.partition(":")[2]


class Profile(Frozen):
    """A named set of models. Names of models are those of the weights manifest where it has one."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: str
    about: str = ""
    speech: Literal["whisper-base"] = "whisper-base"
    languages: tuple[str, ...] = Field(
        default=(), description="spoken languages to choose among (ISO 639-1); empty: any"
    )
    activity: Literal["silero"] = "silero"
    faces: str = Field(
        default="insightface",
        pattern=r"^(insightface(:.+)?|yunet_sface)$",
        description="insightface, yunet_sface, or insightface:NAME or :FOLDER, a pack of its own",
    )
    speaker: Literal["wespeaker"] = "wespeaker"
    screen: Literal["rapidocr"] = "rapidocr"
    objects: Literal["yolox-nano", "none"] = "yolox-nano"
    text: Literal["minilm", "bge-small"] = "minilm"
    reranker: Literal["reranker"] | None = "reranker"
    images: str | None = Field(
        default=None,
        pattern=r"^clip:.+$",
        description="clip:FOLDER, with a CLIP or SigLIP model in ONNX; none comes with Homer",
    )
    writer: Literal["local", "llm"] = "local"
    reasoner: Literal["local", "llm"] = "local"
    chat: dict[str, ChatSpec] = Field(
        default={}, description="by role; 'default' stands for others"
    )
    settings: Settings = Settings()
    calibration: Calibration = Calibration()

    @property
    def images_folder(self) -> Path | None:
        """Where the image-text model lies, where the profile has one."""
        return Path(self.images.partition(":")[2]).expanduser() if self.images else None

    @property
    def text_languages(self) -> tuple[str, ...]:
        """The languages that the text model was made for."""
        return weights_named(self.text).languages

    @property
    def weights(self) -> tuple[str, ...]:
        """The models of the manifest that this profile uses, each once."""
        faces = None if ":" in self.faces else self.faces
        local = [self.speech, self.text, self.reranker, faces, self.speaker, self.objects]
        llama = [spec.model_name for spec in self.chat.values() if spec.provider == IN_PROCESS]
        used = (name for name in [*local, *llama] if name and name != NO_MODEL)
        return tuple(dict.fromkeys(used))

    @property
    def in_process(self) -> bool:
        """Whether a language model that this profile asks runs in this process."""
        return any(spec.provider == IN_PROCESS for spec in self.chat.values())

    def chat_for(self, role: str) -> ChatSpec:
        """The language model of a role, else the one called ``default``.

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
    """The profile asked for, else ``$HOMER_PROFILE``'s, else ``homer.toml``'s, else ``local``.

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
    found = _priced(_validated(name, _resolved(wanted, config.profiles, ())), config.prices)
    return found if home_config is None else _calibrated(found, home_config)


def calibration_file(home_config: Path, profile: str) -> Path:
    """Where a home keeps the calibration that was fitted for a profile."""
    return home_config.parent / "calibration" / f"{profile}.json"


def _calibrated(profile: Profile, home_config: Path) -> Profile:
    """The profile with the calibration that was fitted in this home, where there is one."""
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
    table = _read(path) if path is not None and path.is_file() else {}
    try:
        return _Config.model_validate(table)
    except ValidationError as error:
        raise SetupError(f"homer.toml is wrong at {_told(error)}") from error


def bundled_profiles() -> tuple[str, ...]:
    """Names of the profiles that come with Homer."""
    return tuple(sorted(path.stem for path in BUNDLED.glob("*.toml")))


def profile_names(home_config: Path | None = None) -> tuple[str, ...]:
    """Names of all profiles: those that come with Homer, and those of ``homer.toml``.

    Raises:
        SetupError: ``homer.toml`` cannot be read; says where it is wrong.
    """
    return tuple(sorted({*bundled_profiles(), *_config(home_config).profiles}))


def _resolved(wanted: str, extra: dict[str, Any], seen: tuple[str, ...]) -> dict[str, Any]:
    """The table of a profile with those it is based on merged in below."""
    if wanted in seen:
        raise SetupError(f"profiles based on each other: {' -> '.join([*seen, wanted])}")
    table = _table(wanted, extra)
    base = table.pop("base", None)
    if not isinstance(base, str | None):
        raise SetupError(f"the profile {wanted!r} is wrong at base: it names another profile")
    return table if base is None else _merged(_resolved(base, extra, (*seen, wanted)), table)


def _table(wanted: str, extra: dict[str, Any]) -> dict[str, Any]:
    if wanted.endswith(".toml"):
        return _read(Path(wanted))
    known = bundled_profiles()
    if wanted not in known and wanted not in extra:
        names = ", ".join(sorted({*known, *extra}))
        raise NotFound(f"there is no profile {wanted!r}; known profiles: {names}")
    bundled = _read(BUNDLED / f"{wanted}.toml") if wanted in known else {}
    return _merged(bundled, extra.get(wanted, {}))


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """``below`` with the values of ``above`` over it, table by table."""
    both = dict(below)
    for key, value in above.items():
        old = both.get(key)
        tables = isinstance(old, dict) and isinstance(value, dict)
        both[key] = _merged(old, value) if tables and isinstance(old, dict) else value
    return both


def _validated(name: str, table: dict[str, Any]) -> Profile:
    try:
        return Profile.model_validate({**table, "name": name})
    except ValidationError as error:
        raise SetupError(f"the profile {name!r} is wrong at {_told(error)}") from error


def _told(error: ValidationError) -> str:
    """Where a table is wrong first, and how."""
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"


def _priced(profile: Profile, prices: Mapping[str, Price]) -> Profile:
    """The profile with what the home's table says a model costs."""
    chat = {
        role: spec.model_copy(update={"price": spec.price or prices.get(spec.model)})
        for role, spec in profile.chat.items()
    }
    return profile.model_copy(update={"chat": chat})


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise NotFound(f"there is no profile file {path}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise SetupError(f"{path} cannot be read: {error}") from error
