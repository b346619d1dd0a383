"""Models run on an accelerator that is there, else on the CPU, in threads that sleep."""

from __future__ import annotations

import _ctypes
import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import ctranslate2
import pytest

from domain.errors import SetupError, WeightsMissing
from flows.ingest_video import models_used
from models import devices
from models.devices import (
    ARENAS,
    CPU_PROVIDER,
    SpeechDevice,
    describe_devices,
    execution_providers,
    speech_device,
)
from models.hub import ENDPOINT
from models.profile import Profile, load_profile
from models.speech import FILES, whisper_folder
from models.toolbox import Toolbox
from services.health import check_speech_model

CUDA = "CUDAExecutionProvider"
EXACT = {"use_tf32": "0"}
"""Without it, products are of numbers rounded to 10 bits."""

PLAIN: tuple[list[str], int] = ([], 0)
TWO_GPUS = ([CUDA, "CoreMLExecutionProvider"], 2)
USED = (
    "import numpy as n; from models.speech import SileroActivity; "
    "SileroActivity().spans(n.zeros(16000, 'f'))"
)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """A machine with these execution providers and CUDA devices."""
    providers, count = request.param

    def runs(provider: str, index: str = "") -> bool:
        return provider in providers and int(index or 0) < count

    monkeypatch.setattr(devices, "built_providers", lambda: [*providers, CPU_PROVIDER])
    monkeypatch.setattr(devices, "runs_models", runs)
    monkeypatch.setattr(devices, "cuda_devices", lambda: count)


@pytest.mark.parametrize(
    ("machine", "device", "providers"),
    [
        (PLAIN, "auto", [CPU_PROVIDER]),
        (TWO_GPUS, "auto", [(CUDA, EXACT), CPU_PROVIDER]),
        (TWO_GPUS, "cpu", [CPU_PROVIDER]),
        (TWO_GPUS, "cuda", [(CUDA, EXACT), CPU_PROVIDER]),
        (TWO_GPUS, "cuda:1", [(CUDA, {"device_id": "1", **EXACT}), CPU_PROVIDER]),
        (TWO_GPUS, "coreml", ["CoreMLExecutionProvider", CPU_PROVIDER]),
    ],
    indirect=["machine"],
)
@pytest.mark.usefixtures("machine")
def test_onnx_runtime_takes_the_device_first(device: str, providers: list[object]) -> None:
    assert execution_providers(device) == providers


@pytest.mark.parametrize(
    ("machine", "device", "expected"),
    [
        (PLAIN, "auto", SpeechDevice()),
        (TWO_GPUS, "auto", SpeechDevice("cuda", 0, "float16")),
        (TWO_GPUS, "cuda:1", SpeechDevice("cuda", 1, "float16")),
        (TWO_GPUS, "cpu", SpeechDevice()),
        (TWO_GPUS, "coreml", SpeechDevice()),
    ],
    indirect=["machine"],
)
@pytest.mark.usefixtures("machine")
def test_speech_runs_on_cuda_or_the_cpu(device: str, expected: SpeechDevice) -> None:
    assert speech_device(device) == expected


@pytest.mark.parametrize("machine", [PLAIN], indirect=True)
@pytest.mark.usefixtures("machine")
def test_a_device_that_is_not_there_says_what_to_install() -> None:
    with pytest.raises(SetupError, match="onnxruntime-gpu"):
        execution_providers("cuda")
    with pytest.raises(SetupError, match="onnxruntime-gpu"):
        speech_device("cuda")
    with pytest.raises(SetupError, match="OpenVINOExecutionProvider"):
        execution_providers("openvino")


@pytest.mark.parametrize("machine", [TWO_GPUS], indirect=True)
@pytest.mark.usefixtures("machine")
def test_a_third_device_of_two_is_not_there() -> None:
    with pytest.raises(SetupError, match="cuda:2"):
        speech_device("cuda:2")
    with pytest.raises(SetupError, match="cuda:2"):
        execution_providers("cuda:2")


@pytest.mark.parametrize("machine", [TWO_GPUS], indirect=True)
@pytest.mark.usefixtures("machine")
def test_devices_are_described_with_those_left_unused() -> None:
    assert describe_devices("cpu") == (
        f"images and voices: {CPU_PROVIDER}; speech: cpu, int8; there is also: coreml, cuda"
    )


def test_a_build_for_a_missing_accelerator_is_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "built_providers", lambda: [CUDA, CPU_PROVIDER])
    assert execution_providers("auto") == [CPU_PROVIDER]
    with pytest.raises(SetupError, match=r"onnxruntime-gpu\[cuda,cudnn\]"):
        execution_providers("cuda")
    assert "cuda does not run here: it needs an NVIDIA driver" in describe_devices("auto")


def test_threads_that_look_for_a_device_leave_stdout_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a lock, a thread that ends last puts back what another one had put there."""
    together = threading.Barrier(2)

    class Slow:
        SessionOptions = SimpleNamespace

        @staticmethod
        def InferenceSession(*_: object, **__: object) -> object:  # noqa: N802 (as in ONNX Runtime)
            with contextlib.suppress(threading.BrokenBarrierError):
                together.wait(0.2)
            time.sleep(0.05 if threading.current_thread().name == "second" else 0)
            raise RuntimeError("no such device")

    monkeypatch.setattr(devices, "_onnx_runtime", lambda: Slow)
    before, find = sys.stdout, devices.runs_models.__wrapped__
    threads = [threading.Thread(target=find, args=("X",), name=n) for n in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.stdout is before


def test_driver_without_the_library_of_speech_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: 1)
    assert "speech: cpu, int8; speech does not run on cuda here" in describe_devices("auto")
    assert "does not run" not in describe_devices("cpu")


@pytest.mark.parametrize(("library", "count"), [("libno-such-cublas.so.12", 0), ("libc.so.6", 1)])
def test_speech_takes_a_cuda_device_only_with_the_library_that_it_needs(
    monkeypatch: pytest.MonkeyPatch, library: str, count: int
) -> None:
    monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: 1)
    monkeypatch.setattr(devices, "CUBLAS", (library,))
    devices.load_cublas.cache_clear()
    assert devices.cuda_devices() == count
    devices.load_cublas.cache_clear()


def test_library_is_found_in_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "nvidia" / "cublas" / "lib"
    folder.mkdir(parents=True)
    (folder / "libof-the-package.so.12").symlink_to(_ctypes.__file__)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(devices, "CUBLAS", ("libof-the-package.so.12",))
    devices.load_cublas.cache_clear()
    assert devices.load_cublas()
    devices.load_cublas.cache_clear()


def test_speech_by_a_folder_needs_no_model_of_the_manifest(tmp_path: Path) -> None:
    folder = tmp_path / "whisper-tiny"
    folder.mkdir()
    for file in (*FILES, "vocabulary.txt"):
        (folder / file).touch()
    path = tmp_path / "own.toml"
    path.write_text(f'base = "local"\nspeech = "{folder}"\n')
    profile = load_profile(str(path))
    assert "whisper-base" not in profile.weights
    speech = Toolbox(profile, tmp_path).speech
    assert (speech.name, speech.languages) == ("whisper-tiny", ())
    assert models_used(profile)["speech"] == speech.name
    assert models_used(load_profile("local"))["speech"] == "whisper-base"


@pytest.mark.parametrize("file", [*FILES, "vocabulary.json"])
def test_a_file_that_a_speech_model_lacks_is_named(tmp_path: Path, file: str) -> None:
    for other in {*FILES, "vocabulary.json"} - {file}:
        (tmp_path / other).touch()
    with pytest.raises(WeightsMissing, match=f"lacks {file}: put it into {tmp_path}"):
        whisper_folder(str(tmp_path), tmp_path)


def test_offline_it_says_where_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    with pytest.raises(WeightsMissing, match="large-v3-turbo") as failure:
        whisper_folder("large-v3-turbo", tmp_path)
    folder = tmp_path / "speech" / "mobiuslabsgmbh--faster-whisper-large-v3-turbo"
    assert str(folder) in str(failure.value)
    assert "model.bin" in str(failure.value)


def test_unknown_name_of_speech_model_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(WeightsMissing, match=r"no speech model .turbot.*large-v3-turbo"):
        whisper_folder("turbot", tmp_path)
    (found,) = check_speech_model(Profile(name="p", speech="turbot"), tmp_path)
    assert (found.ok, "large-v3-turbo" in found.fix) == (False, True)


@pytest.mark.parametrize("lacking", ["model.bin", "vocabulary.json"])
def test_doctor_names_what_a_folder_with_a_speech_model_lacks(tmp_path: Path, lacking: str) -> None:
    profile = Profile(name="p", speech=str(tmp_path))
    for file in {*FILES, "vocabulary.json"} - {lacking}:
        (tmp_path / file).touch()
    (found,) = check_speech_model(profile, tmp_path)
    assert (found.ok, lacking in found.fix) == (False, True)
    (tmp_path / lacking).touch()
    (found,) = check_speech_model(profile, tmp_path)
    assert found.ok
    assert list(check_speech_model(load_profile("local"), tmp_path)) == []


COUNT = """
import ctypes, sys, tempfile
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
import numpy as np
from perception.picture_stream import keep_freed_memory

keep_freed_memory()
met = Barrier(12)

def hold(_):
    held = [np.ones(100_000, np.uint8) for _ in range(10)]
    met.wait()

with ThreadPoolExecutor(12) as pool:
    list(pool.map(hold, range(12)))
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile() as file:
    out = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
    libc.malloc_info(0, out)
    libc.fclose(out)
    print(file.read().count(b"<heap nr"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's own setting")
def test_memory_pools_do_not_grow_with_threads() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COUNT], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) <= ARENAS


@pytest.mark.parametrize(("given", "spins"), [({}, "0'"), ({"OMP_WAIT_POLICY": "active"}, "3000")])
def test_waiting_threads_sleep_unless_told_otherwise(given: dict[str, str], spins: str) -> None:
    # OpenMP prints its settings, which it reads once, when it is loaded.
    clean = {key: value for key, value in os.environ.items() if not key.startswith("OMP_")}
    output = subprocess.run(
        [sys.executable, "-c", USED],
        env=clean | {"OMP_DISPLAY_ENV": "verbose"} | given,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert f"GOMP_SPINCOUNT = '{spins}" in output.stderr
