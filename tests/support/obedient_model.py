"""A language model that does what the prompts say, over the real protocol, without a thought."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from domain.settings import AskSettings, Settings
from models.profile import Profile
from models.specs import ChatSpec
from models.toolbox import Toolbox
from tests.support.asking import WordToolbox
from tests.support.openai_server import OpenAIServer

_MEMORY = re.compile(r'<memory id="\[([msk]\d+)\]"')
_OPTION = re.compile(r'<option letter="([A-Z])">(.*?)</option>')
_QUESTION = re.compile(r"<question>(.*?)</question>")

PURPOSES = {
    "Split the question": "plan",
    "Search once, or answer": "act",
    "Which subtasks does the evidence answer": "assess",
    "The search is stuck": "replan",
    "The search is over": "conclude",
}


def texts_of(request: dict[str, Any]) -> list[str]:
    found = []
    for message in request["messages"]:
        content = message["content"]
        if isinstance(content, list):
            content = " ".join(part.get("text", "") for part in content)
        found.append(content)
    return found


def purpose_of(request: dict[str, Any]) -> str:
    """What a request is for, by its last message."""
    last = texts_of(request)[-1]
    return next(purpose for mark, purpose in PURPOSES.items() if mark in last)


def obedient(request: dict[str, Any]) -> dict[str, Any]:
    """Plans one subtask, finds the event, looks closer, and answers with the first memory shown."""
    texts = texts_of(request)
    whole = "\n".join(texts)
    question = _QUESTION.findall(whole)[0]
    shown = _MEMORY.findall(whole)
    lines = [ref for ref in shown if ref.startswith("m")] or shown
    match purpose_of(request):
        case "plan":
            return {"subtasks": [{"text": f"find out: {question}", "depends": []}]}
        case "act":
            mode = "event" if len(texts) < 5 else "video"
            return {"action": "search", "mode": mode, "query": f"people and {question.rstrip('?')}"}
        case "assess":
            done = [{"subtask": "t1", "answer": "what it says", "evidence": lines[:1]}]
            return {"resolved": done if lines and lines[0].startswith("m") else [], "reopened": []}
        case "replan":
            return {"rewrite": [], "add": [], "abandon": []}
        case _:
            return _conclusion(whole, lines)


def _conclusion(whole: str, lines: list[str]) -> dict[str, Any]:
    option = _OPTION.findall(whole)
    letter = option[-1][0] if option else None
    if not lines:
        return {"option": letter, "answer": "", "citations": [], "not_in_memory": not option}
    return {"option": letter, "answer": "what was found", "citations": [f"[{lines[0]}]"]}


class LlmToolbox(WordToolbox):
    """A toolbox whose reasoner, or also its writer, is the model behind ``server``."""

    def __init__(
        self,
        server: OpenAIServer,
        *,
        ask: dict[str, Any] | None = None,
        reasoner: str = "llm",
        writer: str = "local",
        **spec: Any,
    ) -> None:
        chat = ChatSpec(model="openai:test", base_url=server.base_url, retries=0, **spec)
        profile = Profile(
            name="scripted",
            reasoner=reasoner,
            writer=writer,
            chat={"default": chat},
            settings=Settings(ask=AskSettings(**(ask or {}))),
        )
        Toolbox.__init__(self, profile, Path("/nonexistent"))
