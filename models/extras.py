"""Packages that only some profiles need, and how to get them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Extra:
    """A package of a provider: the module to import, and the extra of ours that names it."""

    module: str
    package: str
    name: str | None = None

    @property
    def hint(self) -> str:
        """How to install it beside what ``make setup`` installed, and nothing else with it."""
        extra = f'extra "{self.name}": ' if self.name else ""
        return f"{extra}.venv/bin/pip install -c requirements-dev.lock {self.package}"


_KNOWN = {
    "openai": Extra("langchain_openai", "langchain-openai", "openai"),
    "google_genai": Extra("langchain_google_genai", "langchain-google-genai", "gemini"),
    "llama": Extra("xllamacpp", "xllamacpp", "llama"),
}


def extra_of(provider: str) -> Extra:
    """What a provider of language models needs; LangChain's naming where it is not one of ours."""
    package = f"langchain-{provider.replace('_', '-')}"
    return _KNOWN.get(provider) or Extra(package.replace("-", "_"), package)
