"""Ports to models with their adapters, and the profiles that name a set of them."""

import os

# ONNX Runtime and Hugging Face's libraries report to their makers, by whichever library they are
# imported, unless this is set before. Nothing that a user watches or asks may cause traffic.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
