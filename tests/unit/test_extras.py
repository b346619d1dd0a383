"""A package that is missing is named with its extra and a command that installs it and no more."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from models.extras import EVALUATION, OTEL, extra_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("provider", ["openai", "google_genai", "llama", "otel", "evaluation"])
def test_our_extras_have_what_is_named(provider: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = {"otel": OTEL, "evaluation": EVALUATION}.get(provider) or extra_of(provider)
    assert extra.name is not None
    wanted = project["optional-dependencies"][extra.name]
    assert {re.split("[<>=]", name)[0] for name in wanted} == set(extra.packages)
    assert extra.installed
    assert f'extra "{extra.name}"' in extra.hint


def test_a_provider_that_is_not_ours_goes_by_langchains_names() -> None:
    extra = extra_of("google_vertexai")
    assert extra.modules == ("langchain_google_vertexai",)
    assert not extra.installed
    assert extra.hint == (".venv/bin/pip install -c constraints.txt langchain-google-vertexai")
