"""Writers turn what was perceived into memory: one port, a local and a language-model one."""

from __future__ import annotations

from memory.writers.port import Writers
from models.profile import Profile
from models.toolbox import Toolbox


def make_writers(toolbox: Toolbox, profile: Profile) -> Writers:
    """The writers that ``profile`` names.

    Raises:
        SetupError: it names a language model that is not set up.
    """
    if profile.writer == "llm":
        from memory.writers.llm_clip import LlmClipWriter
        from memory.writers.llm_event import LlmEventWriter

        clip = LlmClipWriter(toolbox.chat("write"))
        return Writers(clip, LlmEventWriter(toolbox.chat("write"), profile.settings.memory))
    from memory.writers.local_clip import LocalClipWriter
    from memory.writers.local_event import LocalEventWriter

    return Writers(LocalClipWriter(), LocalEventWriter(profile.settings.memory))
