"""Making LangChain chat models from a profile, with keys from the environment or the keyring."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from domain.errors import SetupError
from domain.words import marked
from models import llama_server
from models.extras import extra_of
from models.secrets import SERVICE, read_key, redact, secrets_of_url
from models.specs import IN_PROCESS, ChatSpec

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

ChatFactory = Callable[[ChatSpec, float | None], "BaseChatModel"]
"""Makes the chat model of a spec at a temperature."""

KEYS = {
    "openai": "OPENAI_API_KEY",
    "google_genai": "GOOGLE_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
}
NO_KEY = "none"


def make_chat_model(spec: ChatSpec, temperature: float | None) -> BaseChatModel:
    """Make the chat model of ``spec``.

    Raises:
        SetupError: A package or a key is missing; names the extra or the variable.
    """
    # LangChain is slow to import, and the local profile does without.
    from langchain.chat_models import init_chat_model

    make: Callable[..., BaseChatModel] = init_chat_model
    options: dict[str, Any] = {
        "timeout": spec.timeout_s,
        # Retries and deadlines are ours (models.retries), the same for every provider.
        "max_retries": 0,
    }
    if temperature is not None:
        options["temperature"] = temperature
    limit = spec.max_tokens + spec.thinking_tokens
    if spec.base_url is None:
        options |= {"max_tokens": limit, **spec.options}
    else:
        # LangChain would send OpenAI's newer name for the limit, which other servers ignore.
        options |= {"base_url": spec.base_url, "extra_body": {"max_tokens": limit, **spec.options}}
    key = api_key(spec)
    if key is not None:
        options["api_key"] = key
    provider = "openai" if spec.provider == IN_PROCESS else spec.provider
    if provider == "openai":
        # A reply that comes in pieces is counted too, also by servers other than OpenAI's own.
        options["stream_usage"] = True
    try:
        return make(spec.model_name, model_provider=provider, **options)
    except ImportError as error:
        hint = extra_of(spec.provider).hint
        raise SetupError(
            marked(
                f"the language model {spec.model!r} needs a package that is not installed: {hint}"
            )
        ) from error
    except ValueError as error:
        raise SetupError(f"the language model {spec.model!r} cannot be used: {error}") from error


def api_key(spec: ChatSpec) -> str | None:
    """Return the key from the environment or the keyring; a dummy for a server that wants none.

    Servers of this process have a key of their own.

    Raises:
        SetupError: The variable is not set.
    """
    if spec.provider == IN_PROCESS:
        return llama_server.KEY
    variable = key_variable(spec)
    if variable is None:
        return NO_KEY if spec.base_url is not None else None
    key = read_key(variable)
    if not key:
        raise SetupError(
            f"the language model {spec.model!r} needs a key: "
            f"set the environment variable {variable}, or `keyring set {SERVICE} {variable}`"
        )
    return key


def key_variable(spec: ChatSpec) -> str | None:
    """Return the environment variable with the key; None if the server wants none."""
    if spec.key is not None:
        return spec.key or None
    return None if spec.base_url is not None else KEYS.get(spec.provider)


def redact_key(text: str, spec: ChatSpec) -> str:
    """Replace the key, and secrets of the address, in ``text``."""
    variable = key_variable(spec)
    return redact(text, [read_key(variable) if variable else None, *secrets_of_url(spec.base_url)])
