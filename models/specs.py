"""Where a model answers, how it is called, and what its calls cost."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, Field, JsonValue, NonNegativeInt, PositiveInt

from domain.base import Frozen
from domain.errors import NotFound, SetupError

if TYPE_CHECKING:
    from models.profile import Profile

PRICES = Path(__file__).with_name("prices.toml")
MILLION = 1_000_000

IN_PROCESS = "llama"
"""The provider of language models that run in this process."""

OPENAI = "openai"
"""The provider of OpenAI's models and of all servers that speak its protocol."""

Structure = Literal["json_schema", "tools", "text"]
"""How a server can be held to a schema, strongest first."""


DAY_S = 86_400
"""No call takes longer than a day."""


class Price(Frozen, allow_inf_nan=False):
    """US dollars a million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)


class ServerSpec(Frozen):
    """Where a model answers, and what it costs."""

    # What is written in the wrong place may be a key.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    base_url: str | None = Field(default=None, pattern=r"^https?://")
    key: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_0-9]*$",
        description="the environment variable with the API key, or its name in the keyring",
    )
    price: Price | None = None


class ChatSpec(ServerSpec):
    """A language model in one role.

    ``model`` is what LangChain's ``init_chat_model`` takes (``openai:gpt-...``), or ``llama:NAME``
    for a GGUF model of the weights manifest or the hub, run in this process.
    """

    model: str = Field(pattern=r"^[a-z_]+:.+$")
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: PositiveInt = 4096
    thinking_tokens: NonNegativeInt = Field(
        default=0, description="room beside max_tokens for what it thinks, which counts as reply"
    )
    context_tokens: PositiveInt | None = Field(default=None, description="of request and reply")
    options: dict[str, JsonValue] = Field(default={}, description="passed on to the provider")
    max_characters: PositiveInt = Field(
        default=100_000, description="of a reply; a longer one is not read to its end"
    )
    timeout_s: float = Field(default=120.0, gt=0, le=DAY_S)
    retries: int = Field(default=2, ge=0, description="after the first try, on 429 and 5xx")
    structure: Structure = "json_schema"
    images: bool = Field(default=True, description="whether it can look at images")
    video: bool = Field(default=False, description="whether it can watch a video")
    at_once: PositiveInt | None = Field(
        default=None, description="calls at a time from this machine; None: as many as are asked"
    )

    @property
    def room(self) -> int | None:
        """Tokens of a request, where the context is bounded: the longest reply leaves so many."""
        context = self.context_tokens
        return context and max(context // 2, context - self.max_tokens - self.thinking_tokens)

    @property
    def provider(self) -> str:
        """The part of ``model`` before the colon."""
        return self.model.partition(":")[0]

    @property
    def model_name(self) -> str:
        """The part of ``model`` after the colon."""
        return self.model.partition(":")[2]


class EncoderSpec(ServerSpec):
    """How a text encoder that does not come with Homer is called and read; only input is paid."""

    query_prefix: str | None = Field(
        default=None, description='what precedes a query ("query: "); None: as the model states'
    )
    passage_prefix: str | None = Field(
        default=None, description='what precedes a stored text ("passage: ")'
    )
    batch: PositiveInt = Field(default=64, description="texts in a request")
    timeout_s: float = Field(default=60.0, gt=0, le=DAY_S)
    retries: int = Field(default=4, ge=0, description="after the first try, on 429 and 5xx")


def cost_usd(spec: ChatSpec, tokens_in: int, tokens_out: int) -> float:
    """Return US dollars for the tokens; 0 if no price is known, or the server is one's own."""
    price = spec.price
    if price is None and spec.base_url is None:
        price = price_list().get(spec.model)
    if price is None:
        return 0.0
    return (tokens_in * price.input + tokens_out * price.output) / MILLION


def is_priced(spec: ChatSpec) -> bool:
    """Check whether the model's price is known; one's own server costs nothing."""
    own = spec.base_url is not None or spec.provider == IN_PROCESS
    return own or spec.price is not None or spec.model in price_list()


def known_models() -> frozenset[str]:
    """Return the models of public providers, as profiles name them."""
    return frozenset(price_list())


@cache
def price_list() -> dict[str, Price]:
    """Return the price of each listed model, by ``provider:model``."""
    table = tomllib.loads(PRICES.read_text(encoding="utf-8"))
    return {
        f"{provider}:{model}": Price(**price)
        for provider, models in table.items()
        for model, price in models.items()
    }


# Tables of profiles as they are written (TOML), merged over those they are based on.

BUNDLED = Path(__file__).with_name("profiles")


def bundled_profiles() -> tuple[str, ...]:
    """Return the names of the profiles that come with Homer."""
    return tuple(sorted(path.stem for path in BUNDLED.glob("*.toml")))


def resolve_table(wanted: str, extra: dict[str, Any], seen: tuple[str, ...]) -> dict[str, Any]:
    """Return the table of a profile merged over those it is based on.

    Args:
        wanted: a profile's name, or the path of a TOML file.
        extra: the tables of the profiles in ``homer.toml``, by name.
        seen: the profiles that are based on it.

    Raises:
        NotFound: there is no such profile.
        SetupError: it cannot be read, or profiles are based on each other.
    """
    if wanted in seen:
        raise SetupError(f"profiles based on each other: {' -> '.join([*seen, wanted])}")
    if wanted.endswith(".toml"):
        table = read_toml(Path(wanted))
    else:
        known = bundled_profiles()
        if wanted not in known and wanted not in extra:
            names = ", ".join(sorted({*known, *extra}))
            raise NotFound(f"there is no profile {wanted!r}; known profiles: {names}")
        bundled = read_toml(BUNDLED / f"{wanted}.toml") if wanted in known else {}
        table = _merge(bundled, extra.get(wanted, {}))
    base = table.pop("base", None)
    if not isinstance(base, str | None):
        raise SetupError(f"the profile {wanted!r} is wrong at base: it names another profile")
    return table if base is None else _merge(resolve_table(base, extra, (*seen, wanted)), table)


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merge ``above`` over ``below``, table by table."""
    both = dict(below)
    for key, value in above.items():
        old = both.get(key)
        tables = isinstance(old, dict) and isinstance(value, dict)
        both[key] = _merge(old, value) if tables and isinstance(old, dict) else value
    return both


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        NotFound: there is none.
        SetupError: it cannot be read as TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise NotFound(f"there is no profile file {path}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise SetupError(f"{path} cannot be read: {error}") from error


def with_prices(profile: Profile, prices: Mapping[str, Price]) -> Profile:
    """Return the profile with prices of the home's table, where it has none itself."""
    chat = {
        role: spec.model_copy(update={"price": spec.price or prices.get(spec.model)})
        for role, spec in profile.chat.items()
    }
    price = profile.encoder.price or prices.get(profile.text)
    encoder = profile.encoder.model_copy(update={"price": price})
    return profile.model_copy(update={"chat": chat, "encoder": encoder})


# Cosine thresholds of identity: from which two vectors are one person, by model of a profile.
#
# They are kept apart from the adapters so that they can be read without loading a model.

FACES = {
    # Of the small pack every true face of a clip with known identities scored 0.60 or more, with
    # a quality of 14 or more; the paper's 0.85 and 22 belong to a larger one.
    "insightface": 0.3,
    # OpenCV gives 0.363 for the unquantised model. Of this one, on a clip with known identities,
    # 99 % of the pairs of different people lie below 0.50 and 95 % of the pairs of one above 0.52.
    "yunet_sface": 0.48,
}
VOICES = {
    # On two-second turns of meetings and interviews with known speakers: one pair of the same voice
    # in ten lies below, one pair of different voices in five hundred above.
    "wespeaker": 0.4
}


def same_face(model: str) -> float:
    """Return the cosine of a face engine, also of a named pack (``insightface:buffalo_l``)."""
    return FACES.get(model.partition(":")[0], FACES["insightface"])


def same_voice(model: str) -> float:
    """Return the cosine of a speaker encoder."""
    return VOICES.get(model, VOICES["wespeaker"])
