"""A language model that goes MemDreamer's rounds by what its prompts say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from tests.support.obedient_model import texts_of
from tests.support.openai_server import Answer

STEP, CONCLUDE = "Answer, or name one tool.", "The search is over: give the answer."
BYTES_A_TOKEN = 3
_FOUND = re.compile(r"<found>\n(.*?)\n</found>", re.S)
_REF = re.compile(r"^\[([ne]\d+)\]", re.M)
_OPTION = re.compile(r'<option letter="([A-Z])">')


def is_step(request: dict[str, Any]) -> bool:
    return STEP in texts_of(request)[1]


def found_in(page: str) -> str:
    return "".join(_FOUND.findall(page))


def refs_in(page: str) -> list[str]:
    """The refs of what the last search showed, in order."""
    return _REF.findall(found_in(page))


def use(tool: str, note: str = "", **arguments: Any) -> dict[str, Any]:
    return {
        "reasoning": "more is needed",
        "useful_info": note,
        "can_answer": False,
        "need": "more",
        "tool": tool,
        "arguments": arguments,
    }


def answer(text: str, *refs: str, note: str = "it is known") -> dict[str, Any]:
    return {
        "reasoning": "it is known",
        "useful_info": note,
        "can_answer": True,
        "answer": text,
        "evidence": list(refs),
        "tool": None,
    }


def obedient_step(request: dict[str, Any]) -> dict[str, Any]:
    """Searches nodes once with the question, then answers with the first that was found."""
    page = texts_of(request)[1]
    refs, letters = refs_in(page), _OPTION.findall(page)
    if "search_nodes(" not in page.partition("Searches made: ")[2].partition("\n")[0]:
        question = re.findall(r"<question>(.*?)</question>", page)[0]
        return use("search_nodes", query=question, note="nothing is known yet")
    if not refs and not letters:
        return {**answer(""), "can_answer": False, "not_in_memory": True}
    return answer(letters[0] if letters else "what was found", *refs[:1])


def tokens_of(request: dict[str, Any]) -> int:
    """The tokens of a request, at three bytes each: rather too many."""
    form = json.dumps(request.get("response_format") or request.get("tools") or "")
    size = sum(len(text.encode()) for text in texts_of(request)) + len(form)
    return round(size / BYTES_A_TOKEN)


def scripted(
    steps: Sequence[Any], otherwise: Callable[[dict[str, Any]], Any] = obedient_step
) -> Callable[[dict[str, Any]], Any]:
    """A model that gives these replies in order, then others; its tokens are counted.

    A reply may be a function of the page that is shown.
    """
    left = list(steps)

    def reply(request: dict[str, Any]) -> Any:
        page = texts_of(request)[1]
        if CONCLUDE in page:
            letters = _OPTION.findall(page)
            made: Any = {
                "option": letters[0] if letters else None,
                "answer": "what was found",
                "citations": refs_in(page)[:1],
            }
        else:
            made = left.pop(0) if left else otherwise(request)
        return Answer(made(page) if callable(made) else made, tokens=(tokens_of(request), 50))

    return reply
