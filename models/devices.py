"""The processor that models run on, as ONNX Runtime and CTranslate2 take it.

Text encoders and rerankers always run on the CPU: their models are quantised for it, and a vector
is to be the same bits wherever it is made. Nothing here is needed on a machine without an
accelerator.
"""

from __future__ import annotations

from typing import NamedTuple

from domain.errors import SetupError

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

Provider = str | tuple[str, dict[str, str]]


class SpeechDevice(NamedTuple):
    """Where Whisper runs: device, number of the device, type of its numbers (CTranslate2)."""

    device: str = CPU
    number: int = 0
    compute_type: str = "int8"


def execution_providers(device: str) -> list[Provider]:
    """Return ONNX Runtime's execution providers for a device, the preferred one first.

    Raises:
        SetupError: The device is named and this ONNX Runtime has no provider for it.
    """
    kind, _, index = device.partition(":")
    if kind == CPU:
        return [CPU_PROVIDER]
    available = available_providers()
    if kind == AUTO:
        found = [PROVIDERS[one] for one in AUTOMATIC if PROVIDERS[one] in available]
        return [*found, CPU_PROVIDER]
    provider = PROVIDERS[kind]
    if provider not in available:
        raise SetupError(f"the device {device!r} is not there: {advice(kind)}")
    return [(provider, {"device_id": index}) if index else provider, CPU_PROVIDER]


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
    """Return the execution providers that the installed ONNX Runtime has."""
    # Slow to import.
    import onnxruntime as ort

    return list(ort.get_available_providers())


def cuda_devices() -> int:
    """Return how many CUDA devices CTranslate2 can use; 0 where its driver is missing."""
    # Slow to import.
    import ctranslate2

    try:
        return int(ctranslate2.get_cuda_device_count())
    except RuntimeError:
        return 0


def advice(kind: str) -> str:
    """Return what to install for a kind of device."""
    if kind == "cuda":
        return (
            "it needs an NVIDIA driver, and in place of onnxruntime the package onnxruntime-gpu "
            "with nvidia-cublas-cu12 and nvidia-cudnn-cu12 (docs/profiles.md); or take 'auto'"
        )
    return (
        f"it needs a build of ONNX Runtime with {PROVIDERS[kind]}, in place of onnxruntime "
        "(docs/profiles.md); or take 'auto'"
    )


def describe_devices(device: str) -> str:
    """Say what models run on, and what else this installation could use."""
    providers = execution_providers(device)
    first = providers[0] if isinstance(providers[0], str) else providers[0][0]
    speech = speech_device(device)
    others = sorted(
        kind for kind, name in PROVIDERS.items() if name in available_providers() and name != first
    )
    more = f"; there is also: {', '.join(others)}" if others else ""
    return f"images and voices: {first}; speech: {speech.device}, {speech.compute_type}{more}"
