"""Writers of clip memories and event patches: local rule-based ones, and language models."""

from __future__ import annotations

from functools import partial

from domain.settings import CLIP_TRIES
from memory.writers.llm_clip import SPOKEN, LlmClipWriter
from memory.writers.llm_event import LlmEventWriter
from memory.writers.local_clip import LocalClipWriter
from memory.writers.local_event import LocalEventWriter
from memory.writers.port import Writers
from models.profile import Profile
from models.sentences import ENGLISH
from models.toolbox import Toolbox


def make_writers(toolbox: Toolbox, profile: Profile) -> Writers:
    """Return the writers that ``profile`` names.

    Raises:
        SetupError: it names a language model that is not set up, or cannot watch the videos that
            it is to be shown.
    """
    if profile.writer == "llm":
        chat = partial(toolbox.chat, "writer", live=True)
        toolbox.chat("writer")  # Raises at once if the model is not set up.
        settings = profile.settings.model_copy(update={"memory": profile.shown_clips})
        languages, context = profile.search_languages, profile.chat_for("writer").context_tokens
        budget = settings.clip_budget
        # Each try has its share of the budget, for the request and the reply.
        budget = min(budget, context * CLIP_TRIES) if context else budget
        clip = LlmClipWriter(
            chat,
            settings.memory.lines,
            budget,
            looks_twice=settings.memory.looks_twice,
            language="English" if languages == (ENGLISH,) else SPOKEN,
        )
        return Writers(clip, LlmEventWriter(chat, profile.settings.memory, context))
    clip_writer = LocalClipWriter(profile.settings.memory.lines, toolbox.sentences.is_person)
    return Writers(clip_writer, LocalEventWriter(profile.settings.memory))
