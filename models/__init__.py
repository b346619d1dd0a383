"""Ports to models, one adapter a file, and the profiles that name a set of them."""

import os

# ONNX Runtime reports to its makers from the moment it is imported, by whichever library, unless
# this is set before. Nothing that a user watches or asks may cause traffic.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
