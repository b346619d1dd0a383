"""OpenMP, in which CTranslate2 computes: how its threads wait for each other."""

from __future__ import annotations

import os


def sleep_while_waiting() -> None:
    """Threads sleep where they would spin: on a busy machine they spin longer than they compute.

    To be called before what brings OpenMP along is imported; who set it otherwise keeps that.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
