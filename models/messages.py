"""Messages to a language model: as they are sent, recorded, hashed and counted."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from string import Template
from typing import Any, Literal, Protocol

from pydantic import BaseModel

from domain.base import Frozen
from domain.people import TAG
from domain.settings import IMAGE_TOKENS
from domain.words import strip_invisible

PNG = b"\x89PNG"
BYTES_A_TOKEN = 3.0
"""Fewer than most tokenizers need, so that an estimate is rather too high."""


class Message(Frozen):
    """One turn."""

    role: Literal["system", "user", "assistant"]
    content: str


def system(content: str) -> Message:
    return Message(role="system", content=content)


def user(content: str) -> Message:
    return Message(role="user", content=content)


def assistant(content: str) -> Message:
    return Message(role="assistant", content=content)


def to_langchain(
    messages: Sequence[Message],
    images: Sequence[bytes],
    labels: Sequence[str] = (),
    *,
    video_urls: bool = False,
) -> list[dict[str, Any]]:
    """Convert messages for LangChain; images (JPEG or PNG) and MP4 go with the last user turn.

    Args:
        labels: a text that comes before each image; empty where there are none.
        video_urls: give a video as servers with OpenAI's protocol take it, for which LangChain has
            no block; else as LangChain's own block.
    """
    as_part = partial(_as_content, video_urls=video_urls)
    return _with_parts(messages, [*_parts(images, labels, as_part)])


def to_record(
    messages: Sequence[Message], images: Sequence[bytes], labels: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Convert messages to plain JSON; images are named by their SHA-256."""
    return _with_parts(messages, [*_parts(images, labels, _as_digest)])


def request_hash(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    schema: Mapping[str, Any],
    temperature: float | None,
) -> str:
    """Return the SHA-256 of a request's canonical JSON, by which its record is found."""
    request = {
        "model": model,
        "messages": list(messages),
        "schema": schema,
        "temperature": None if temperature is None else float(temperature),
    }
    canonical = json.dumps(request, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def text_tokens(text: str) -> int:
    """Estimate the tokens of a text in any language, rather too high than too low."""
    return round(len(text.encode()) / BYTES_A_TOKEN)


def request_tokens(
    messages: Sequence[Message], schema: type[BaseModel], images: int, labels: Sequence[str] = ()
) -> int:
    """Estimate the tokens of a request with so many whole images."""
    form = json.dumps(schema.model_json_schema())
    texts = (*(message.content for message in messages), *labels)
    text = sum(len(one.encode()) for one in texts) + len(form)
    return round(text / BYTES_A_TOKEN) + images * IMAGE_TOKENS


def _parts(
    images: Sequence[bytes], labels: Sequence[str], as_part: Callable[[bytes], dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield each image after its label, if it has one.

    Raises:
        ValueError: there are labels, but not one for each image.
    """
    for image, label in zip(images, labels or [""] * len(images), strict=True):
        if label:
            yield {"type": "text", "text": label}
        yield as_part(image)


def is_video(file: bytes) -> bool:
    """Check whether a file is an MP4, by its first box."""
    return file[4:8] == b"ftyp"


def _as_content(file: bytes, *, video_urls: bool) -> dict[str, Any]:
    if not is_video(file):
        return {"type": "image_url", "image_url": {"url": _data_url(file)}}
    if video_urls:
        return {"type": "video_url", "video_url": {"url": _data_url(file)}}
    return {"type": "video", "base64": base64.b64encode(file).decode(), "mime_type": "video/mp4"}


def _as_digest(file: bytes) -> dict[str, Any]:
    kind = "video" if is_video(file) else "image"
    return {"type": kind, "sha256": hashlib.sha256(file).hexdigest()}


def _with_parts(messages: Sequence[Message], parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    plain: list[dict[str, Any]] = [message.model_dump() for message in messages]
    turns = [index for index, message in enumerate(messages) if message.role == "user"]
    if parts and not turns:
        raise ValueError("images need a user message to go with")
    if parts:
        text = {"type": "text", "text": messages[turns[-1]].content}
        plain[turns[-1]]["content"] = [text, *parts]
    return plain


def _data_url(file: bytes) -> str:
    image = "image/png" if file.startswith(PNG) else "image/jpeg"
    kind = "video/mp4" if is_video(file) else image
    return f"data:{kind};base64,{base64.b64encode(file).decode()}"


# Prompts: text files beside the code that uses them, and text made safe for them.


_TAGS = re.compile(rf"({TAG.pattern.replace('(', '(?:')})")
_BRACKETS = str.maketrans("<>＜＞", "‹›‹›")


class Prompts(Protocol):
    """Returns a prompt by its file's name without ending, with its slots filled."""

    def __call__(self, name: str, /, **slots: str | int) -> str:
        """Return the prompt ``name``.

        Raises:
            KeyError: a slot has no value.
        """
        ...


def prompts_beside(file: str) -> Prompts:
    """Return the prompts in the folder ``prompts`` beside a module, which passes its ``__file__``.

    Inserted text is never parsed for slots; a slot without a value is an error.
    """
    folder = Path(file).with_name("prompts")

    @cache
    def template(name: str) -> Template:
        return Template((folder / f"{name}.md").read_text(encoding="utf-8"))

    def prompt(name: str, /, **slots: str | int) -> str:
        return template(name).substitute(slots).strip()

    return prompt


def sanitise(text: str) -> str:
    """Make untrusted text safe for a prompt: it can neither forge a tag nor close a delimiter."""
    return " ".join(strip_invisible(text).translate(_BRACKETS).split())


def sanitise_generated(text: str) -> str:
    """What a model wrote of a video, for use in another prompt: tags of people stay, no mark does.

    Generated text may repeat untrusted text.
    """
    return "".join(
        piece
        if TAG.fullmatch(piece)
        else re.sub(r"\s+", " ", strip_invisible(piece).translate(_BRACKETS))
        for piece in _TAGS.split(text)
    )


def join_lines(lines: Iterable[str]) -> str:
    """Join lines with line ends; ``(none)`` if there are none."""
    return "\n".join(lines) or "(none)"
