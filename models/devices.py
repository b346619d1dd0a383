"""The processor that models run on, as ONNX Runtime and CTranslate2 take it.

Text encoders and rerankers always run on the CPU: their models are quantised for it, and a vector
is to be the same bits wherever it is made. Nothing here is needed on a machine without an
accelerator.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import threading
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from domain.errors import SetupError
from domain.words import marked

AUTO, CPU = "auto", "cpu"
DEVICE_PATTERN = r"^(auto|cpu|(cuda|rocm|openvino|coreml|directml)(:\d+)?)$"
PROVIDERS = {
    "cuda": "CUDAExecutionProvider",
    "rocm": "ROCMExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "directml": "DmlExecutionProvider",
}
"""ONNX Runtime's execution provider of each kind of device."""
AUTOMATIC = ("cuda", "rocm")
"""What ``auto`` takes where it is there. The others refuse some models, so they are named."""
CPU_PROVIDER = "CPUExecutionProvider"
CUBLAS = ("libcublasLt.so.12", "libcublas.so.12")
"""The libraries that CTranslate2 loads by name, the one that the other needs first."""
SMALLEST = bytes.fromhex(
    "08083a390a100a016112016222084964656e7469747912036f6e655a0f0a0161120a0a08080112040a020801"
    "620f0a0162120a0a08080112040a02080142040a001011"
)
"""A model of ONNX that returns its input, a number; every ONNX Runtime since 1.12 reads it."""
FATAL_ONLY = 4
"""ONNX Runtime logs fatal errors only."""

_output = threading.Lock()
"""Held while standard output is another one, which is so for all threads."""

Provider = str | tuple[str, dict[str, str]]


class SpeechDevice(NamedTuple):
    """Where Whisper runs: device, number of the device, type of its numbers (CTranslate2)."""

    device: str = CPU
    number: int = 0
    compute_type: str = "int8"


def execution_providers(device: str) -> list[Provider]:
    """Return ONNX Runtime's execution providers for a device, the preferred one first.

    Raises:
        SetupError: The device is named, and no model runs on it here.
    """
    kind, _, index = device.partition(":")
    if kind == CPU:
        return [CPU_PROVIDER]
    available = available_providers()
    if kind == AUTO:
        found = [PROVIDERS[one] for one in AUTOMATIC if PROVIDERS[one] in available]
        return [*(_with_options(one) for one in found), CPU_PROVIDER]
    provider = PROVIDERS[kind]
    if provider not in available or (index and not runs_models(provider, index)):
        raise SetupError(f"the device {device!r} is not there: {advice(kind)}")
    return [_with_options(provider, index), CPU_PROVIDER]


def _with_options(provider: str, index: str = "") -> Provider:
    """Add the options that a provider needs.

    CUDA would round the factors of products to 10 bits (TF32). What the object detector returns
    then differs from what it returns on a CPU.
    """
    options = {"device_id": index} if index else {}
    if provider == PROVIDERS["cuda"]:
        options["use_tf32"] = "0"
    return (provider, options) if options else provider


def speech_device(device: str) -> SpeechDevice:
    """Return where Whisper runs; CTranslate2 knows CPUs and CUDA.

    Raises:
        SetupError: CUDA is named and CTranslate2 finds no such device.
    """
    kind, _, index = device.partition(":")
    if kind not in (AUTO, "cuda"):
        return SpeechDevice()
    count, wanted = cuda_devices(), int(index or 0)
    if wanted < count:
        return SpeechDevice("cuda", wanted, "float16")
    if kind == AUTO:
        return SpeechDevice()
    raise SetupError(f"the device {device!r} is not there: {advice(kind)}")


def available_providers() -> list[str]:
    """Return the execution providers that run models here, of those of the installed ONNX Runtime.

    A build for an accelerator lists its provider on every machine, also where a driver or library
    is missing: the session then runs on the CPU, and says so in a log only.
    """
    known = {CPU_PROVIDER, *PROVIDERS.values()} & {*built_providers()}
    return [one for one in sorted(known) if one == CPU_PROVIDER or runs_models(one)]


def built_providers() -> list[str]:
    """Return the execution providers that the installed ONNX Runtime was built with."""
    return list(_onnx_runtime().get_available_providers())


def _onnx_runtime() -> Any:
    # Slow to import.
    import onnxruntime

    return onnxruntime


@cache
def runs_models(provider: str, index: str = "") -> bool:
    """Check whether a session of the smallest model runs on an execution provider.

    Args:
        index: The number of the device, if it is not the first one.
    """
    ort = _onnx_runtime()
    options = ort.SessionOptions()
    options.log_severity_level = FATAL_ONLY
    try:
        # It prints what it misses on standard output, which is a command's result.
        with _output, contextlib.redirect_stdout(io.StringIO()):
            if provider == PROVIDERS["cuda"]:
                # CUDA's libraries are in packages where the system does not look for them.
                ort.preload_dlls()
            wanted = [_with_options(provider, index)]
            session = ort.InferenceSession(SMALLEST, options, providers=wanted)
    except Exception:  # noqa: BLE001 (each provider raises what it likes)
        return False
    return provider in session.get_providers()


def cuda_devices() -> int:
    """Return how many CUDA devices CTranslate2 can use; 0 without a driver or cuBLAS.

    Its package counts devices wherever there is a driver, and fails at the first product of
    matrices where cuBLAS is missing.
    """
    count = counted_devices()
    return count if count and load_cublas() else 0


def counted_devices() -> int:
    """Return how many CUDA devices the driver has; 0 without one."""
    # Slow to import.
    import ctranslate2

    try:
        return int(ctranslate2.get_cuda_device_count())
    except RuntimeError:
        return 0


@cache
def load_cublas() -> bool:
    """Load cuBLAS as CTranslate2 needs it: of the system, else of its package."""
    spec = find_spec("nvidia")
    places = (
        [Path(place) / "cublas" / "lib" for place in spec.submodule_search_locations or ()]
        if spec
        else []
    )
    return any(
        _load_all([str(folder / name) if folder else name for name in CUBLAS])
        for folder in (None, *places)
    )


def _load_all(libraries: list[str]) -> bool:
    try:
        for library in libraries:
            ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return False
    return True


def advice(kind: str) -> str:
    """Return what to install for a kind of device."""
    if kind == "cuda":
        return marked(
            "it needs an NVIDIA driver; images and voices in place of onnxruntime the package "
            "onnxruntime-gpu[cuda,cudnn], and speech nvidia-cublas-cu12 (docs/profiles.md); or "
            "take 'auto'"
        )
    return marked(
        f"it needs a build of ONNX Runtime with {PROVIDERS[kind]}, in place of onnxruntime "
        "(docs/profiles.md); or take 'auto'"
    )


def describe_devices(device: str) -> str:
    """Say what models run on, and what else this installation could use."""
    providers = execution_providers(device)
    first = providers[0] if isinstance(providers[0], str) else providers[0][0]
    speech = speech_device(device)
    runs, built = available_providers(), built_providers()
    others = [kind for kind, name in sorted(PROVIDERS.items()) if name in runs and name != first]
    broken = [
        kind for kind, name in sorted(PROVIDERS.items()) if name in built and name not in runs
    ]
    text = marked(f"images and voices: {first}; speech: {speech.device}, {speech.compute_type}")
    if others:
        text = marked(f"{text}; there is also: {', '.join(others)}")
    if device == AUTO and counted_devices() and speech.device == CPU:
        text = marked(f"{text}; speech does not run on cuda here: {advice('cuda')}")
    for kind in broken:
        text = marked(f"{text}; {kind} does not run here: {advice(kind)}")
    return text


# Settings of the native code that models run in: OpenMP's threads and the C library's memory.


ARENAS = 2
"""As many as threads in which models run at a time: with one they would wait for each other."""
_ARENA_MAX = -8
"""mallopt(3): M_ARENA_MAX."""
_SET_OTHERWISE = ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")


@cache
def limit_arenas() -> bool:
    """Limit the C library to ``ARENAS`` pools, which all threads share; existing ones stay.

    An environment that sets it otherwise is respected; other C libraries have no such setting.

    Returns:
        Whether the limit was set.
    """
    if any(name in os.environ for name in _SET_OTHERWISE):
        return False
    with suppress(OSError, TypeError, AttributeError):
        return bool(ctypes.CDLL(None).mallopt(_ARENA_MAX, ARENAS))
    return False


def trim_heap() -> None:
    """Return what is free in the C library's pools to the system.

    To be called between large pieces of work: what the next one asks for may fit nowhere in what
    is free, and both would be held.
    """
    with suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def make_idle_threads_sleep() -> None:
    """Make OpenMP's waiting threads sleep: on a busy machine they spin longer than they compute.

    To be called before what brings OpenMP along is imported. An environment that sets it otherwise
    is respected.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
