"""What models need besides files: keys, which texts must not show, and optional packages."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from urllib.parse import quote, unquote, urlsplit

REDACTED = "[key]"
SERVICE = "homer"
"""Under which the keyring has keys: ``keyring set homer OPENAI_API_KEY``."""
MIN_LENGTH = 4
"""A secret with fewer letters would be found in any text."""


def read_key(variable: str) -> str | None:
    """Return the key of that name from the environment, else from the keyring if installed."""
    return os.environ.get(variable) or _from_keyring(variable)


@cache
def _from_keyring(variable: str) -> str | None:
    if find_spec("keyring") is None:
        return None
    try:
        found = import_module("keyring").get_password(SERVICE, variable)
    except Exception:  # noqa: BLE001 - an edge: every keyring has errors of its own, and may be away
        return None
    return str(found) if found else None


def is_readable(url: str) -> bool:
    """Return whether an address can be split into its parts; ``http://[x`` cannot."""
    try:
        urlsplit(url)
    except ValueError:
        return False
    return True


def redacted_url(url: str) -> str:
    """Return an address for messages, without user, password and query; what is none is hidden."""
    if not is_readable(url):
        return f"{url.partition('://')[0]}://..."
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def without_login(url: str) -> str:
    """Return an address without name and password, whose query is needed to find the same again."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl()


def secrets_of_url(url: str | None) -> Iterator[str]:
    """Yield what is secret in an address: user and password, also in HTTP's form, and the query."""
    if url is None:
        return
    if not is_readable(url):
        yield url.partition("://")[2]
        return
    parts = urlsplit(url)
    name, password = unquote(parts.username or ""), unquote(parts.password or "")
    if password or name:
        yield b64encode(f"{name}:{password}".encode()).decode()
        yield from (password, parts.netloc.rpartition("@")[0])
    yield from (one.partition("=")[2] for one in parts.query.split("&"))


def redact(text: str, secrets: Iterable[str | None]) -> str:
    """Replace these secrets in ``text``, as they are and percent-encoded."""
    known = {one for one in secrets if one and len(one) >= MIN_LENGTH}
    for one in sorted(known | {quote(one, safe="") for one in known}, key=len, reverse=True):
        text = text.replace(one, REDACTED)
    return text


@dataclass(frozen=True)
class Extra:
    """The packages of a provider, the modules in them, and the extra of ours that names them."""

    modules: tuple[str, ...]
    packages: tuple[str, ...]
    name: str | None = None

    @property
    def installed(self) -> bool:
        """Whether it is installed; no more than parent packages are imported."""
        try:
            return all(find_spec(module) is not None for module in self.modules)
        except ModuleNotFoundError:
            return False

    @property
    def hint(self) -> str:
        """The command that installs it beside what ``make setup`` installed."""
        extra = f'extra "{self.name}": ' if self.name else ""
        packages = " ".join(self.packages)
        return f"{extra}.venv/bin/pip install -c constraints.txt {packages}"


DASK = Extra(("prefect_dask", "distributed"), ("prefect-dask", "distributed"), "dask")
"""What Prefect's Dask task runner needs."""

RAY = Extra(("prefect_ray", "ray"), ("prefect-ray", "ray"), "ray")
"""What Prefect's Ray task runner needs."""

_KNOWN = {
    "openai": Extra(("langchain_openai",), ("langchain-openai",), "openai"),
    "google_genai": Extra(("langchain_google_genai",), ("langchain-google-genai",), "gemini"),
    # A model in this process is called by OpenAI's protocol too.
    "llama": Extra(
        ("xllamacpp", "langchain_openai"), ("xllamacpp", "langchain-openai"), name="llama"
    ),
}

OTEL = Extra(
    ("opentelemetry.sdk", "opentelemetry.exporter"),
    ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"),
    name="otel",
)
"""Traces and metrics for a collector."""

MCP = Extra(("mcp",), ("mcp",), "mcp")
"""The server for MCP clients."""

LITERT = Extra(("ai_edge_litert",), ("ai-edge-litert",))
"""What sounds are recognised with. Not every machine has a build of it."""

EVALUATION = Extra(("jiwer", "pyannote.metrics"), ("jiwer", "pyannote-metrics"), name="evaluation")
"""Error rates of transcripts and of speakers, for the evaluation of perception."""


def extra_of(provider: str) -> Extra:
    """Return what a provider of language models needs; others go by LangChain's names."""
    package = f"langchain-{provider.replace('_', '-')}"
    return _KNOWN.get(provider) or Extra((package.replace("-", "_"),), (package,))
