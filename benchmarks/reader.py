"""``python -m benchmarks.reader [SECONDS]``: what reaches a model without fault.

It sees an image by the bars in it, and knows what that second of a film shows; it reads memories
and cards, and knows nothing else. So what it gets wrong, it was not shown. Two films are watched
with the shipped profile ``openai`` and asked about: what happens, what happens right after, what
only a look tells, why something happens, and what happens in either film. The same is done with a
writer that overlooks every second event at first, with and without the second look.
"""

from __future__ import annotations

import argparse
import base64
import io
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import av
import numpy as np
from PIL import Image

from benchmarks.grown import scratch_store
from domain.asking import Question
from flows.ingest_files import watch_files
from flows.ingest_steps import SilentListener
from flows.workspace import Workspace
from graphs.runner import Runner
from models.profile import load_profile
from models.toolbox import Toolbox
from store.database import Store
from store.home import Home
from store.queries.videos import video_titles
from tests.support.openai_server import Answer, OpenAIServer

SIZE, FPS = (640, 360), 5
BITS, BAR = 16, 40
"""The number of a second is written in black and white squares along the upper edge."""
FILM_BIT = 15
"""The last of them tells the two films apart."""
ASKED = 30
"""Questions of each kind, at most."""
IMAGE_TOKENS, CHARACTERS_A_TOKEN = 258, 4
CLIP_S, WINDOW = 30, 10
PEOPLE = ["Ada", "Boris", "Carla", "Dmitri", "Edda", "Farid", "Greta", "Henk", "Ines", "Jarl"]
ACTS = ["lifts", "breaks", "cleans", "hides", "sells", "burns", "opens", "paints"]
KINDS = ["copper", "paper", "glass", "velvet", "marble", "rusty", "plastic", "silken", "clay"]
THINGS = ["bowl", "mirror", "flute", "kite", "globe", "candle", "wheel", "anchor", "puppet"]
PLACES = ["at the harbour", "in the attic", "by the well", "on the roof", "under the arch"]
COATS = ["red", "green", "white", "grey", "violet", "amber"]


@dataclass(frozen=True)
class Shown:
    """What some seconds of a film show; only a look tells the colour of the coat."""

    start_s: int
    end_s: int
    who: str
    thing: str
    text: str
    coat: str


Film = tuple[Shown, ...]


def make_film(path: Path, seconds: int, number: int) -> Film:
    """Write a silent film of events, each with a background of its own, and return them."""
    pick, shown, used = Random(number), list[Shown](), set[tuple[str, str]]()  # noqa: S311
    while (start := shown[-1].end_s if shown else 0) < seconds:
        end = min(seconds, start + pick.choice((3, 4, 6, 8, 11)))
        while True:
            who, thing = pick.choice(PEOPLE), f"{pick.choice(KINDS)} {pick.choice(THINGS)}"
            if (who, thing) not in used:
                break
        used.add((who, thing))
        text = f"{who} {pick.choice(ACTS)} the {thing} {pick.choice(PLACES)}."
        shown.append(Shown(start, end, who, thing, text, pick.choice(COATS)))
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS, options={"crf": "20"})
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        for event in shown:
            colour = np.random.default_rng(event.start_s).integers(40, 210, 3)
            for second in range(event.start_s, event.end_s):
                image = np.full((SIZE[1], SIZE[0], 3), colour, np.uint8)
                for bit in range(BITS):
                    lit = second >> bit & 1 if bit < FILM_BIT else number & 1
                    image[:BAR, bit * BAR : (bit + 1) * BAR] = 240 if lit else 15
                for frame in range(FPS):
                    x = 40 * (second % 10) + 8 * frame
                    image[200:260] = colour
                    image[200:260, x : x + 60] = 255 - colour
                    picture = av.VideoFrame.from_ndarray(image, format="rgb24")
                    container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    return tuple(shown)


class Reader:
    """The model; ``overlooks``: whether it writes every second event at the second look only."""

    def __init__(self, films: Sequence[Film], *, overlooks: bool = False) -> None:
        self.films, self.overlooks = films, overlooks
        self.events = [*dict.fromkeys(event for film in films for event in film)]
        self.seen = set[Shown]()
        self.spent = Counter[str]()
        self.calls = Counter[str]()

    def __call__(self, request: dict[str, Any]) -> Answer:
        """Answer a request by the schema that it asks for."""
        form = request["response_format"]["json_schema"]
        name, properties = form["name"], form["schema"]["properties"]
        text, images = self._read(request)
        make: Any = getattr(self, f"_{name}", lambda *_: {})
        answer = make(text, images, properties)
        tokens = len(text) // CHARACTERS_A_TOKEN + IMAGE_TOKENS * len(images)
        kind = "clip" if name in ("WrittenClip", "WrittenMore") else "other"
        kind = "question" if "<question>" in text and kind == "other" else kind
        self.spent[kind] += tokens
        self.calls[name] += 1
        return Answer(answer, tokens=(tokens, 50))

    def _read(self, request: dict[str, Any]) -> tuple[str, list[tuple[Shown | None, str]]]:
        """Return all text of a request, and what each image shows with the text before it."""
        texts, images = list[str](), list[tuple[Shown | None, str]]()
        for message in request["messages"]:
            content = message["content"]
            plain: Any = [{"type": "text", "text": content}]
            whole = plain if isinstance(content, str) else content
            for part in whole:
                if part["type"] == "text":
                    texts.append(part["text"])
                else:
                    file = base64.b64decode(part["image_url"]["url"].partition(",")[2])
                    images.append((self._event_of(file), texts[-1]))
        return "\n".join(texts), images

    def _event_of(self, file: bytes) -> Shown | None:
        """Return the event that an image shows, by its bars."""
        pixels = np.asarray(Image.open(io.BytesIO(file)).convert("L"), dtype=float)
        scale = pixels.shape[1] / SIZE[0]
        middles = [int((bit + 0.5) * BAR * scale) for bit in range(BITS)]
        lit = [pixels[int(BAR / 2 * scale), x] > 128 for x in middles]
        second = sum(one << bit for bit, one in enumerate(lit[:FILM_BIT]))
        # The first film's number is odd.
        film = self.films[0 if lit[FILM_BIT] else -1]
        return next((one for one in film if one.start_s <= second < one.end_s), None)

    def _WrittenClip(self, _: str, images: Any, __: Any) -> dict[str, Any]:  # noqa: N802
        events = sorted({one for one, _ in images if one}, key=lambda one: one.start_s)
        self.seen |= {*events}
        told = events[::2] if self.overlooks else events
        keyframes = [
            {"image": n, "text": one.text}
            for n, (one, label) in enumerate(images, 1)
            if one in told and "keyframe" in label
        ]
        return {"lines": [*map(_line, told)], "keyframes": keyframes}

    def _WrittenMore(self, _: str, images: Any, __: Any) -> dict[str, Any]:  # noqa: N802
        events = sorted({one for one, _ in images if one}, key=lambda one: one.start_s)
        return {"lines": [*map(_line, events[1::2])] if self.overlooks else []}

    def _WrittenPatch(self, text: str, _: Any, __: Any) -> dict[str, Any]:  # noqa: N802
        """A segment for every three clips; the third of them is the effect of the first."""
        new = re.findall(r"\d+", re.findall(r"New clips: ([\d, ]+)", text)[0])
        pages = dict(re.findall(r"^clip (\d+):\n((?:- .*\n?)*)", text, re.M))
        clips = [int(clip) for clip in new]
        parts = [clips[n : n + 3] for n in range(0, len(clips), 3)]
        told = [
            _whole([*self._known("".join(pages.get(str(n), "") for n in part))], part)
            for part in parts
        ]
        segments = [
            {
                "label": f"{part[0]} to {part[-1]}: {events[0].thing if events else 'nothing'}",
                "summary": " ".join(one.text for one in events) or "Nothing is told.",
                "clips": part,
            }
            for part, events in zip(parts, told, strict=True)
        ]
        edges = [
            {
                "source": segments[n]["label"],
                "target": segments[n + 2]["label"],
                "relation": "causes",
                "confidence": 0.9,
                "rationale": because(told[n][0], told[n + 2][-1]),
                "evidence": [parts[n][0], parts[n + 2][-1]],
            }
            for n in range(len(parts) - 2)
            if told[n] and told[n + 2]
        ]
        return {"segments": segments, "edges": edges}

    def _PlanReply(self, text: str, _: Any, __: Any) -> dict[str, Any]:  # noqa: N802
        return {"subtasks": [{"text": _question(text)}]}

    def _TimedActReply(self, text: str, images: Any, forms: Any) -> dict[str, Any]:  # noqa: N802
        return self._ActReply(text, images, forms)

    def _ActReply(self, text: str, images: Any, forms: Any) -> dict[str, Any]:  # noqa: N802
        """Answer once all is known, else search what is asked for, or look at its time."""
        answer, refs = self._answer(text, images)
        plain = {"reason": "so", "query": "", "mode": "event", "citations": [], "support": []}
        if refs and "answer" in forms["action"].get("enum", ["answer"]):
            return plain | {"action": "answer", "answer": answer, "citations": refs}
        asked, tries = self._asked(text), text.count("<card mode=")
        modes = forms["mode"].get("enum") or ["event", "video", "keyframe"]
        found = asked in self._known(text)
        look = found and "coat" in _question(text) and "keyframe" in modes
        words = f"{asked.who} and the {asked.thing}"
        mode = "keyframe" if look else ["event", "video"][tries % 2]
        query = asked.text if found else f"{words} in round {tries}"
        at = f"{asked.start_s // 60}:{asked.start_s % 60 + 1:02d}" if look else ""
        action = plain | {"action": "search", "answer": "", "query": f"{query} {tries}"}
        return action | {"mode": mode if mode in modes else modes[0]} | ({"at": at} if look else {})

    def _AssessReply(self, text: str, images: Any, forms: Any) -> dict[str, Any]:  # noqa: N802
        return self._LookReply(text, images, forms)

    def _LookReply(self, text: str, images: Any, forms: Any) -> dict[str, Any]:  # noqa: N802
        answer, refs = self._answer(text, images)
        seen = [
            {"image": ref[0], "text": f"{one.who} wears a {one.coat} coat."}
            for one, label in images
            if one and (ref := re.findall(r"\[([kf]\d+)\]", label))
        ]
        done = {"subtask": "t1", "answer": answer, "evidence": refs, "support": [1.0] * len(refs)}
        reply: dict[str, Any] = {"resolved": [done] if refs else []}
        return reply | ({"seen": seen} if "seen" in forms else {})

    def _ConcludeReply(self, text: str, images: Any, _: Any) -> dict[str, Any]:  # noqa: N802
        answer, refs = self._answer(text, images)
        return {"answer": answer, "citations": refs, "support": [1.0] * len(refs)} | {
            "not_in_memory": not refs
        }

    def _answer(self, text: str, images: Any) -> tuple[str, list[str]]:
        """Return what is asked for and the refs that tell it; none where it was not shown."""
        asked, question, known = self._asked(text), _question(text), self._known(text)
        if "coat" in question:
            for one, label in images:
                if one == asked and (ref := re.findall(r"\[([kf]\d+)\]", label)):
                    return f"A {one.coat} coat.", ref
            noted = rf'id="\[([kf]\d+)\]"[^>]*>[^<]*{asked.who} wears a {asked.coat} coat'
            if asked in known and (ref := re.findall(noted, text)):
                return f"A {asked.coat} coat.", ref[:1]
        elif "right after" in question:
            after = next((one for one in self.events if one.start_s == asked.end_s), None)
            if asked in known and after in known and after is not None:
                return after.text, [known[asked], known[after]]
        elif question.startswith("Why"):
            causes = [one for one in known if because(one, asked).rstrip(".") in text]
            if causes:
                return causes[0].text, [known[causes[0]]]
        elif asked in known:
            return asked.text, [known[asked]]
        return "It is not in memory.", []

    def _asked(self, text: str) -> Shown:
        question = _question(text)
        return next(one for one in self.events if one.who in question and one.thing in question)

    def _known(self, text: str) -> Mapping[Shown, str]:
        """Return the events that a text tells, each with a ref of it if it has one."""
        found = dict[Shown, str]()
        for ref, body in re.findall(r'<memory id="\[(\w+)\]"[^>]*>(.*?)</memory>', text, re.S):
            for one in self.events:
                if one.text.rstrip(".") in body:
                    found.setdefault(one, ref)
        if not found and "<memory " not in text:
            found = {one: "" for one in self.events if one.text.rstrip(".") in text}
        return found


def because(cause: Shown, effect: Shown) -> str:
    """Say that an event is the effect of another."""
    return f"{effect.text.rstrip('.')}, because {cause.text}"


def _question(text: str) -> str:
    found = re.findall(r"<question>([^<]*\?)</question>", text)
    return found[-1] if found else ""


def _line(event: Shown) -> dict[str, Any]:
    times = {"start_s": event.start_s, "end_s": event.end_s}
    return {"kind": "episodic", "text": event.text, **times}


def _whole(events: Sequence[Shown], clips: Sequence[int]) -> list[Shown]:
    """Return the events that begin and end within these clips, one after the other."""
    start_s, end_s = CLIP_S * clips[0], CLIP_S * (clips[-1] + 1)
    return [one for one in events if start_s <= one.start_s and one.end_s <= end_s]


def questions(films: Sequence[Film]) -> Iterator[tuple[str, str, str]]:
    """Yield the kind of each question, the question, and what its answer must hold."""
    film, pick = films[0], Random(7)  # noqa: S311
    some = sorted(pick.sample(range(len(film) - 1), min(ASKED, len(film) - 1)))
    for n in some:
        doing = f"{film[n].who} with the {film[n].thing}"
        yield "fact", f"What does {film[n].who} do with the {film[n].thing}?", film[n].text
        yield "right after", f"What happens right after {doing} is seen?", film[n + 1].text
        yield "a look", f"Which colour has the coat of {doing}?", film[n].coat
    last = film[-1].end_s // CLIP_S
    for start in range(0, last - WINDOW + 1, WINDOW):
        cause = _whole(film, range(start, start + 3))[0]
        effect = _whole(film, range(start + 6, start + 9))[-1]
        yield "why", f"Why is {effect.who} seen with the {effect.thing}?", cause.text
    other = films[-1]
    for n in pick.sample(range(len(other)), min(ASKED, len(other))):
        asked = f"What does {other[n].who} do with the {other[n].thing}?"
        yield "either film", asked, other[n].text


def opened(store: Store, server: OpenAIServer, memory: Mapping[str, Any]) -> Workspace:
    """Return a workspace of the shipped profile, with its model on this server."""
    home, profile = Home.default(), load_profile("openai")
    spec = profile.chat["default"].model_copy(
        update={"base_url": server.base_url, "model": "openai:reader"}
    )
    changed = profile.settings.memory.model_copy(update=memory)
    settings = profile.settings.model_copy(update={"memory": changed})
    profile = profile.model_copy(update={"chat": {"default": spec}, "settings": settings})
    return Workspace(home, store, profile, Toolbox(profile, home.weights))


def measure(films: Sequence[Film], paths: Sequence[Path], **memory: Any) -> Iterator[str]:
    """Watch and ask; yield lines. With settings of ``memory`` the writer overlooks half."""
    reader = Reader(films, overlooks=bool(memory))
    right, every = Counter[str](), Counter[str]()
    with scratch_store() as store, OpenAIServer(reader) as server:
        workspace = opened(store, server, memory)
        for outcome in watch_files(workspace, paths, SilentListener(), direct=True):
            if outcome.exit_code:
                raise SystemExit(str(outcome))
        with store.begin() as session:
            ids = {title: video for video, title in video_titles(session).items()}
        videos = tuple(ids[path.stem] for path in paths)
        asked = [one for one in questions(films) if not memory or one[0] == "fact"]
        with Runner(store, workspace.toolbox) as runner:
            for kind, question, wanted in asked:
                view = videos if kind == "either film" else videos[:1]
                answer = runner.ask(Question(text=question, videos=view)).answer
                every[kind] += 1
                right[kind] += wanted.rstrip(".") in answer.text
    shown = 100 * len(reader.seen) / len(reader.events)
    clips = reader.spent["clip"] / max(1, reader.calls["WrittenClip"])
    asking = reader.spent["question"] / max(1, every.total())
    yield f"  events shown {shown:.0f} %; {clips:.0f} tokens a clip, {asking:.0f} a question"
    for kind, count in every.items():
        yield f"  {kind}: {100 * right[kind] / count:.0f} % of {count} right"


def main() -> None:
    """Make the films, and print what is shown and answered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=int, nargs="?", default=1_800, help="of the first film")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / "first.mp4", Path(folder) / "second.mp4"]
        films = [make_film(paths[0], seconds, 1), make_film(paths[1], min(seconds, 300), 2)]
        print("the profile as it is shipped")
        print(*measure(films, paths), sep="\n", flush=True)
        short = ([films[1]] * 2, paths[1:])
        for twice in (False, True):
            print(f"a writer that overlooks half, {'with' if twice else 'without'} a second look")
            print(*measure(*short, second_look=twice), sep="\n", flush=True)


if __name__ == "__main__":
    main()
