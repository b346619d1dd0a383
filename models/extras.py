"""Packages that only some profiles and settings need, and how to get them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec


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
