"""A language model that really sees: it looks at the images it is sent, and at nothing else.

It speaks OpenAI's protocol (``tests.support.openai_server``). It decodes the images of a request,
looks at them with the project's own reader of printed text, detector of things and detector of
faces, and at their colours and shapes. An image is named by the text block before it. Of the words
of a request it reads the question; memories and cards it does not read, so what it answers is on
the images or nowhere.

Questions have forms, with what is asked for first and what is known after: "Which number is on the
red card?", "What colour is the card with the word HARBOUR?", "Which shape is on the card at 00:12?"
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from domain.asking import names_image
from domain.time import TimeSpan, parse_clock
from graphs.ask_result import AskResult
from models.ports import FaceEngine, ObjectDetector, ScreenReader
from tests.support.obedient_model import purpose_of, texts_of
from tests.support.picture_cards import COLOURS, SHAPES
from tests.support.prompted_models import WorldModel

Request = dict[str, Any]
_LABEL = re.compile(r"\[([kf]\d+)\] (\d+(?::\d\d)+)")
_QUESTION = re.compile(r"<question>(.*?)</question>")
_WANTED = re.compile(r"^(?:which|what|how many)\s+(\w+)", re.I)
_TIME = re.compile(r"\b\d+(?::\d\d)+\b")
NEAR_MS = 2_000
"""An image shows a moment that is asked about if it is this near."""


@dataclass(frozen=True)
class Sight:
    """What is on one image."""

    colour: str
    shape: str
    words: tuple[str, ...]
    things: tuple[str, ...] = ()
    faces: int = 0

    def value(self, wanted: str) -> str:
        """Return what is asked for, "" if it is not on the image."""
        numbers = [word for word in self.words if word.isdigit()]
        letters = [word for word in self.words if word.isalpha()]
        found = {
            "colour": self.colour,
            "shape": self.shape,
            "number": next(iter(numbers), ""),
            "word": next(iter(letters), ""),
            "thing": next(iter(self.things), ""),
            "faces": str(self.faces),
        }
        return found.get(wanted, "")

    def __str__(self) -> str:
        printed = " ".join(self.words) or "nothing"
        return f"a {self.colour} card with a {self.shape} and {printed} printed on it"


@dataclass(frozen=True)
class Image:
    """An image of a request with the ref and the time that its label gives it."""

    data: bytes
    ref: str = ""
    time_ms: int | None = None


@dataclass
class Eyes:
    """Looks at images; each is looked at once."""

    reader: ScreenReader
    detector: ObjectDetector | None = None
    faces: FaceEngine | None = None
    _known: dict[str, Sight] = field(default_factory=dict)

    def look(self, data: bytes) -> Sight:
        key = hashlib.sha256(data).hexdigest()
        if key not in self._known:
            self._known[key] = self._look(decoded(data))
        return self._known[key]

    def _look(self, image: NDArray[np.uint8]) -> Sight:
        lines = [line.text for line in self.reader.read(image)]
        things = self.detector.objects(image) if self.detector else []
        return Sight(
            colour=main_colour(image),
            shape=main_shape(image),
            words=tuple(word for line in lines for word in re.findall(r"[A-Za-z]+|\d+", line)),
            things=tuple(thing.label for thing in things),
            faces=len(self.faces.faces(image)) if self.faces else 0,
        )


def decoded(data: bytes) -> NDArray[np.uint8]:
    found = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert found is not None
    return np.ascontiguousarray(found[:, :, ::-1].astype(np.uint8))


def main_colour(image: NDArray[np.uint8]) -> str:
    edges = np.concatenate([image[:8].reshape(-1, 3), image[-8:].reshape(-1, 3)])
    middle = np.median(edges, axis=0)
    away = {name: np.linalg.norm(middle - np.array(colour)) for name, colour in COLOURS.items()}
    return min(away, key=lambda name: float(away[name]))


def main_shape(image: NDArray[np.uint8]) -> str:
    """Return the name of the largest white shape, "" if there is none."""
    white = (image.min(axis=2) > 235).astype(np.uint8)
    outlines, _ = cv2.findContours(white, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    large = [one for one in outlines if cv2.contourArea(one) > 0.01 * white.size]
    if not large:
        return ""
    outline = max(large, key=cv2.contourArea)
    corners = len(cv2.approxPolyDP(outline, 0.04 * cv2.arcLength(outline, True), True))
    return {3: "triangle", 4: "square"}.get(corners, "circle")


def images_of(request: Request) -> list[Image]:
    """Return the images of a request, each with the label right before it."""
    found = []
    for message in request["messages"]:
        content = message["content"]
        parts = content if isinstance(content, list) else []
        for before, part in zip([{}, *parts], parts, strict=False):
            if part["type"] == "image_url":
                url = part["image_url"]["url"]
                found.append(_named(before.get("text", ""), base64.b64decode(url.split(",")[1])))
    return found


def _named(label: str, data: bytes) -> Image:
    match = _LABEL.fullmatch(label)
    return Image(data, match[1], parse_clock(match[2])) if match else Image(data)


def with_images(request: Request, change: Callable[[list[Image]], list[Image]]) -> Request:
    """Return a request with other images, or other labels, in the place of its own."""
    messages = []
    for message in request["messages"]:
        images = images_of({"messages": [message]})
        texts = [p for p in message["content"] if p["type"] == "text"] if images else []
        plain = [part for part in texts if not _LABEL.fullmatch(part["text"])]
        parts = [part for image in change(images) for part in _sent(image)] if images else []
        messages.append({**message, "content": [*plain, *parts]} if images else message)
    return {**request, "messages": messages}


def _sent(image: Image) -> list[dict[str, Any]]:
    clock = "" if image.time_ms is None else f"{image.time_ms // 60_000:02d}"
    label = f"[{image.ref}] {clock}:{(image.time_ms or 0) // 1000 % 60:02d}"
    url = f"data:image/jpeg;base64,{base64.b64encode(image.data).decode()}"
    picture = {"type": "image_url", "image_url": {"url": url}}
    return [*([{"type": "text", "text": label}] if image.ref else []), picture]


def shuffled(images: list[Image]) -> list[Image]:
    """Give every image the label of the next; a single one that of another time."""
    if len(images) == 1:
        (only,) = images
        return [replace(only, ref=f"{only.ref}0", time_ms=(only.time_ms or 0) + 10_000)]
    return [
        replace(image, ref=other.ref, time_ms=other.time_ms)
        for image, other in zip(images, [*images[1:], *images[:1]], strict=True)
    ]


def dropped(_images: list[Image]) -> list[Image]:
    """Send no image."""
    return []


def unnamed(images: list[Image]) -> list[Image]:
    """Send the images without labels."""
    return [Image(image.data) for image in images]


def foreign(others: Sequence[bytes], images: list[Image]) -> list[Image]:
    """Keep the labels, but send images of another video."""
    return [replace(image, data=others[n % len(others)]) for n, image in enumerate(images)]


def is_right(made: AskResult, value: str, span: TimeSpan) -> bool:
    """Return whether an answer is right, and cites pictures of that time and nothing else."""
    cited = made.answer.citations
    shown = [names_image(c.ref) and span.start_ms <= c.span.start_ms < span.end_ms for c in cited]
    return made.answer.text == value and bool(shown) and all(shown)


@dataclass(frozen=True)
class Asked:
    """What a question asks for, and what it says of the picture."""

    wanted: str
    colour: str = ""
    shape: str = ""
    words: tuple[str, ...] = ()
    at_ms: int | None = None

    def fits(self, image: Image, sight: Sight) -> bool:
        near = self.at_ms is None or (
            image.time_ms is not None and abs(image.time_ms - self.at_ms) <= NEAR_MS
        )
        return (
            near
            and self.colour in ("", sight.colour)
            and self.shape in ("", sight.shape)
            and all(word in sight.words for word in self.words)
        )


class SeeingModel:
    """The script of a server: what the model says to each request.

    Args:
        eyes: look at the images.
        change: what happens to a request before it is seen; for tests of what must not happen.
    """

    def __init__(self, eyes: Eyes, change: Callable[[Request], Request] | None = None) -> None:
        self._eyes, self._change = eyes, change or (lambda request: request)

    def __call__(self, request: Request) -> dict[str, Any]:
        said = self._said(self._change(request), purpose_of(request))
        fields = request["response_format"]["json_schema"]["schema"]["properties"]
        return {name: value for name, value in said.items() if name in fields}

    def _said(self, request: Request, purpose: str) -> dict[str, Any]:
        text = "\n".join(texts_of(request))
        question = _QUESTION.findall(text)[0]
        images = [(image, self._eyes.look(image.data)) for image in images_of(request)]
        match purpose:
            case "plan":
                return {"subtasks": [{"text": f"find out: {question}"}]}
            case "act":
                return self._search(question, text.count("<card mode"))
            case "assess":
                return {"resolved": self._resolved(question, images), "seen": _seen(images)}
            case "replan":
                return {}
        return self._concluded(question, images)

    def _search(self, question: str, cards: int) -> dict[str, Any]:
        words = " ".join(re.findall(r"\w+", question)[1:])
        ways = ("picture of", "another look at", "image somewhere with", "view that shows")
        time = _TIME.search(question)
        return {
            "action": "search",
            "mode": "keyframe",
            "at": time[0] if time else "",
            "query": f"{ways[cards % len(ways)]} {words} {cards or ''}".strip(),
        }

    def _matching(
        self, question: str, images: Sequence[tuple[Image, Sight]]
    ) -> tuple[str, str] | None:
        """Return what is asked for and the ref of the image that shows it."""
        wanted = _WANTED.match(question)
        rest = question[wanted.end() :] if wanted else question
        time = _TIME.search(rest)
        named = re.findall("\\b[A-Z]{3,}\\b|\\b\\d{2,}\\b", _TIME.sub(" ", rest))
        asked = Asked(
            wanted=wanted[1].lower() if wanted else "",
            colour=next((one for one in COLOURS if one in rest.split()), ""),
            shape=next((one for one in SHAPES if one in rest), ""),
            words=tuple(named),
            at_ms=parse_clock(time[0]) if time else None,
        )
        for image, sight in images:
            if asked.fits(image, sight) and sight.value(asked.wanted):
                return sight.value(asked.wanted), image.ref
        return None

    def _resolved(
        self, question: str, images: Sequence[tuple[Image, Sight]]
    ) -> list[dict[str, Any]]:
        found = self._matching(question, images)
        if found is None:
            return []
        value, ref = found
        return [{"subtask": "t1", "answer": value, "evidence": [ref], "support": [0.9]}]

    def _concluded(self, question: str, images: Sequence[tuple[Image, Sight]]) -> dict[str, Any]:
        found = self._matching(question, images)
        if found is None:
            return {"answer": "", "not_in_memory": True, "citations": []}
        value, ref = found
        return {"answer": value, "citations": [ref], "support": [0.9], "not_in_memory": False}


class SeeingWorldModel(SeeingModel):
    """The same in WorldMM's loop: it searches images by time until it sees what is asked for.

    Args:
        eyes: look at the images.
        searches: the queries of its searches of images, in order.
        change: as of ``SeeingModel``.
    """

    def __init__(
        self,
        eyes: Eyes,
        searches: Sequence[str],
        change: Callable[[Request], Request] | None = None,
    ) -> None:
        super().__init__(eyes, change)
        self._searches = searches

    def __call__(self, request: Request) -> dict[str, Any]:
        purpose = WorldModel.purpose(request)
        if purpose not in ("decide", "respond"):
            answer: dict[str, Any] = WorldModel()(request)
            return answer
        seen = self._change(request)
        page = texts_of(seen)[1]
        question = _QUESTION.findall(page)[0]
        found = self._matching(question, [(i, self._eyes.look(i.data)) for i in images_of(seen)])
        if purpose == "respond":
            value, ref = found or ("", "")
            return {"found": bool(found), "answer": value, "evidence": [ref] if ref else []}
        made = page.count("<found>")
        if found or made >= len(self._searches):
            return {"reason": "it is seen, or is not to be seen", "action": "answer"}
        query = self._searches[made]
        return {"reason": "look", "action": "search", "memory": "visual", "query": query}


def _seen(images: Sequence[tuple[Image, Sight]]) -> list[dict[str, str]]:
    return [{"image": image.ref, "text": str(sight)} for image, sight in images]
