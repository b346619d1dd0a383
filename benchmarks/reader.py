"""``python -m benchmarks.reader [SECONDS]``: what reaches a model without fault.

It sees an image by the bars in it, and knows what that second of a film shows; it reads memories
and cards, and knows nothing else. So what it gets wrong, it was not shown. Two films are watched
with the shipped profile ``openai`` and asked about: what happens, what happens right after, what
only a look tells, why something happens, and what happens in either film.

A third film has people with faces and voices, whom the model knows by the tags of the page alone,
and who say their names some time. It is watched as a file and as a stream: who does something, and
how many times somebody does it; of the stream also while it runs. The faces, voices and words are
read by ``BarToolbox``.

The second film is watched again by a writer that overlooks every second event at first, with and
without the second look.
"""

from __future__ import annotations

import argparse
import base64
import io
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.grown import scratch_store
from benchmarks.reader_films import (
    CLIP_S,
    PLACES,
    BarToolbox,
    Film,
    Shown,
    nameless_film,
    peopled_film,
    read_bars,
    write_film,
)
from domain.asking import Question
from domain.media import Video
from flows.live_stream import open_stream, watch_stream
from flows.watching import SilentListener, watch_files
from flows.workspace import Workspace
from graphs.runner import Runner
from models.profile import load_profile
from models.toolbox import Toolbox
from store.database import Store
from store.home import Home
from store.queries.videos import video_titles
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.streams import Fed

ASKED = 30
"""Questions of each kind, at most."""
IMAGE_TOKENS, CHARACTERS_A_TOKEN = 258, 4
WINDOW = 10


class Reader:
    """The model; ``overlooks``: whether it writes every second event at the second look only."""

    def __init__(self, films: Mapping[int, Film], *, overlooks: bool = False) -> None:
        self.films, self.overlooks = films, overlooks
        self.events = [*dict.fromkeys(event for film in films.values() for event in film)]
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
        """Return the event that an image shows, by its bars; none for a face cut out of one."""
        bars = read_bars(np.asarray(Image.open(io.BytesIO(file)).convert("RGB")))
        film = self.films[bars[0]] if bars else ()
        return next((one for one in film if bars and one.start_s <= bars[1] < one.end_s), None)

    def _WrittenClip(self, text: str, images: Any, __: Any) -> dict[str, Any]:  # noqa: N802
        events = _in_time(images)
        self.seen |= {*events}
        told = events[::2] if self.overlooks else events
        who = {one: _tag(one, text, images) for one in told}
        keyframes = [
            {"image": n, "text": f"{who[one]} {one.deed}."}
            for n, (one, label) in enumerate(images, 1)
            if one in told and "keyframe at" in label
        ]
        lines = [_line(one, who[one]) for one in told]
        lines = lines or [{"kind": "episodic", "text": "Nothing is seen."}]
        reply: dict[str, Any] = {"lines": lines, "keyframes": keyframes}
        for one in (one for one in told if one.speaks):
            for voice in re.findall(rf"(<voice_\d+>): I am {one.who}\.", text)[:1]:
                same = {"face": who[one], "voice": voice, "reason": "they say their name"}
                reply |= {"names": [{"tag": voice, "name": one.who}], "same": [same]}
        return reply

    def _WrittenMore(self, text: str, images: Any, __: Any) -> dict[str, Any]:  # noqa: N802
        events = _in_time(images)[1::2] if self.overlooks else []
        return {"lines": [_line(one, _tag(one, text, images)) for one in events]}

    def _WrittenPatch(self, text: str, _: Any, __: Any) -> dict[str, Any]:  # noqa: N802
        """A segment for every three clips; the third of them is the effect of the first."""
        new = re.findall(r"\d+", re.findall(r"New clips: ([\d, ]+)", text)[0])
        pages = dict(re.findall(r"^clip (\d+):\n((?:- .*\n?)*)", text, re.M))
        clips = [int(clip) for clip in new]
        parts = [clips[n : n + 3] for n in range(0, len(clips), 3)]
        read = ["".join(pages.get(str(n), "") for n in part) for part in parts]
        told = [
            _whole([one for one in self.events if one.deed in page], part)
            for page, part in zip(read, parts, strict=True)
        ]
        segments = [
            {
                "label": f"{part[0]} to {part[-1]}: {events[0].thing if events else 'nothing'}",
                # People as they are called on the page: by name, or by tag.
                "summary": " ".join(re.findall(rf"\S+ {one.deed}\.", page)[0] for one in events)
                or "Nothing is told.",
                "clips": part,
            }
            for part, page, events in zip(parts, read, told, strict=True)
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
        asked, tries, found = self._asked(text), text.count("<card mode="), self._known(text)
        # Only a list of the lines of an event, in its focus, tells how many times.
        counts = "How many times" in _question(text)
        enough = refs and (tries > 2 or not counts)
        if enough and "answer" in forms["action"].get("enum", ["answer"]):
            return plain | {"action": "answer", "answer": answer, "citations": refs}
        modes = forms["mode"].get("enum") or ["event", "video", "keyframe"]
        look = asked in found and "coat" in _question(text) and "keyframe" in modes
        who = "somebody" if _question(text).startswith("Who") else asked.who
        words = f"{who} and the {asked.thing}"
        why = _question(text).startswith("Why")
        plan = ["event", "event", "video"] if counts or why else ["event", "video"]
        mode = "keyframe" if look else plan[tries % len(plan)]
        query = asked.text if asked in found else f"{words} in round {tries}"
        if why and asked in found:
            # The contents tell which event it belongs to: what causes it is known of that.
            query = _label(text, asked.start_s) or query
        at = f"{asked.start_s // 60}:{asked.start_s % 60 + 1:02d}" if look else ""
        action = plain | {"action": "search", "answer": "", "query": f"{query} {tries}"}
        return action | {"mode": mode if mode in modes else modes[0]} | ({"at": at} if look else {})

    def _AssessReply(self, text: str, images: Any, forms: Any) -> dict[str, Any]:  # noqa: N802
        return self._LookReply(text, images, forms)

    def _LookReply(self, text: str, images: Any, forms: Any) -> dict[str, Any]:  # noqa: N802
        answer, refs = self._answer(text, images)
        # One search may not show all that is to be counted.
        refs = [] if "How many times" in _question(text) else refs
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
            if refs := self._looked(asked, text, images):
                return f"A {asked.coat} coat.", refs
        elif "right after" in question:
            after = next((one for one in self.events if one.start_s == asked.end_s), None)
            if asked in known and after in known and after is not None:
                return after.text, [known[asked], known[after]]
        elif question.startswith("Why"):
            causes = [one for one in known if because(one, asked).rstrip(".") in text]
            if causes:
                return causes[0].text, [known[causes[0]]]
        elif "How many times" in question:
            told = rf'<memory id="\[(m\w+)\]"[^>]*>[^<]*{asked.text[:-1]}'
            if refs := [*dict.fromkeys(re.findall(told, text))]:
                return f"{len(refs)} times.", refs
        elif asked in known:
            return asked.text, [known[asked]]
        return "It is not in memory.", []

    def _looked(self, asked: Shown, text: str, images: Any) -> list[str]:
        """Return the image that shows what is asked for, or what was noted of one."""
        for one, label in images:
            if one == asked and (ref := re.findall(r"\[([kf]\d+)\]", label)):
                return ref
        noted = rf'id="\[([kf]\d+)\]"[^>]*>[^<]*{asked.who} wears a {asked.coat} coat'
        return re.findall(noted, text)[:1] if asked in self._known(text) else []

    def _asked(self, text: str) -> Shown:
        question = _question(text)
        # Who does it is not in every question, and what is done not either.
        return next(
            one
            for one in self.events
            if one.thing in question and (one.who in question or f"{one.act} the" in question)
        )

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


def _label(text: str, at_s: int) -> str:
    """Return the label of the event at this time, by the contents that come with the question."""
    for start, end, label in re.findall(r"^([\d:]+)-([\d:]+) (.+)$", text, re.M):
        first, last = (
            sum(int(part) * 60**n for n, part in enumerate(reversed(time.split(":"))))
            for time in (start, end)
        )
        if first <= at_s < last:
            return str(label)
    return ""


def _in_time(images: Sequence[tuple[Shown | None, str]]) -> list[Shown]:
    """Return the events that these images show, but for one that is of the clip before."""
    shown = {one for one, label in images if one and " at " in label}
    return sorted(shown, key=lambda one: one.start_s)


def _tag(event: Shown, page: str, images: Sequence[tuple[Shown | None, str]]) -> str:
    """Return who does it: by name, or by the tag that the page has where the face is."""
    if not any(event.faces):
        return event.who
    place = PLACES[event.faces.index(event.who)]
    where = [f"image {n} {place}" for n, (one, _) in enumerate(images, 1) if one == event]
    found = Counter[str]()
    for line in re.findall(r"^.*<face_\d+>.*: seen .*$", page, re.M):
        places = re.findall(r"image \d+ \w+", line)
        found[re.findall(r"<face_\d+>", line)[0]] += len({*where} & {*places})
    best = found.most_common(1)
    return best[0][0] if best and best[0][1] else "Somebody"


def _line(event: Shown, who: str) -> dict[str, Any]:
    times = {"start_s": event.start_s, "end_s": event.end_s}
    return {"kind": "episodic", "text": f"{who} {event.deed}.", **times}


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
    # Of what is in both films, a question does not tell which is meant.
    both = {(one.who, one.thing) for one in film}
    other = [one for one in films[-1] if (one.who, one.thing) not in both]
    for n in pick.sample(range(len(other)), min(ASKED, len(other))):
        asked = f"What does {other[n].who} do with the {other[n].thing}?"
        yield "either film", asked, other[n].text


def people_questions(film: Film) -> Iterator[tuple[str, str, str]]:
    """Yield such questions about a film of people: who does something, and how many times."""
    times = Counter(one.text for one in film)
    once = [one for one in film if times[one.text] == 1]
    for one in Random(7).sample(once, min(ASKED, len(once))):  # noqa: S311
        yield "who", f"Who {one.act} the {one.thing}?", one.text
    for one in {one.text: one for one in film if times[one.text] > 1}.values():
        asked = f"How many times does {one.who} do that: {one.act} the {one.thing}?"
        yield "how many times", asked, f"{times[one.text]} times"


def opened(
    store: Store, server: OpenAIServer, memory: Mapping[str, Any], *, bars: bool
) -> Workspace:
    """Return a workspace of the shipped profile, with its model on this server.

    ``bars``: with faces, voices and words that are read by ``BarToolbox``.
    """
    home, profile = Home.default(), load_profile("openai")
    spec = profile.chat["default"].model_copy(
        update={"base_url": server.base_url, "model": "openai:reader"}
    )
    changed = profile.settings.memory.model_copy(update=memory)
    settings = profile.settings.model_copy(update={"memory": changed})
    profile = profile.model_copy(update={"chat": {"default": spec}, "settings": settings})
    make = BarToolbox if bars else Toolbox
    return Workspace(home, store, profile, make(profile, home.weights))


def watched(workspace: Workspace, paths: Sequence[Path]) -> list[str]:
    """Watch files; return the ids of their videos."""
    for outcome in watch_files(workspace, paths, SilentListener(), direct=True):
        if outcome.exit_code:
            raise SystemExit(str(outcome))
    with workspace.store.begin() as session:
        ids = {title: video for video, title in video_titles(session).items()}
    return [ids[path.stem] for path in paths]


class Asked:
    """Asks questions, and counts by kind how many there are and how many are answered rightly."""

    def __init__(self, runner: Runner, reader: Reader) -> None:
        self._runner, self._reader = runner, reader
        self.right, self.every = Counter[str](), Counter[str]()

    def ask(self, kind: str, question: str, wanted: str, videos: Sequence[str]) -> None:
        """Ask about these videos; the answer has to hold ``wanted``."""
        answer = self._runner.ask(Question(text=question, videos=tuple(videos))).answer
        self.every[kind] += 1
        self.right[kind] += wanted.rstrip(".") in answer.text

    def lines(self) -> Iterator[str]:
        """Yield what the model was shown and what it took, then the part that is right by kind."""
        reader = self._reader
        shown = 100 * len(reader.seen) / len(reader.events)
        clips = reader.spent["clip"] / max(1, reader.calls["WrittenClip"])
        asking = reader.spent["question"] / max(1, self.every.total())
        yield f"  events shown {shown:.0f} %; {clips:.0f} tokens a clip, {asking:.0f} a question"
        for kind, count in self.every.items():
            yield f"  {kind}: {100 * self.right[kind] / count:.0f} % of {count} right"


def measure(films: Mapping[int, Film], paths: Sequence[Path], **memory: Any) -> Iterator[str]:
    """Watch and ask; yield lines. With settings of ``memory`` the writer overlooks half."""
    reader = Reader(films, overlooks=bool(memory))
    with scratch_store() as store, OpenAIServer(reader) as server:
        workspace = opened(store, server, memory, bars=False)
        videos = watched(workspace, paths)
        with Runner(store, workspace.toolbox) as runner:
            asked = Asked(runner, reader)
            for kind, question, wanted in questions([*films.values()]):
                if not memory or kind == "fact":
                    view = videos if kind == "either film" else videos[:1]
                    asked.ask(kind, question, wanted, view)
            yield from asked.lines()


def measure_people(film: Film, number: int, path: Path) -> Iterator[str]:
    """Watch a film of people as a file and as a stream, and ask; yield lines."""
    reader = Reader({number: film})
    with scratch_store() as store, OpenAIServer(reader) as server:
        workspace = opened(store, server, {}, bars=True)
        with Runner(store, workspace.toolbox) as runner:
            asked = Asked(runner, reader)
            videos = watched(workspace, [path])
            for kind, question, wanted in people_questions(film):
                asked.ask(kind, question, wanted, videos)
            fed = Fed(path.with_suffix(".pipe"), [path.read_bytes()])
            with (
                fed.feeding() as source,
                open_stream(workspace, source, stop=fed.stop, clock=fed.clock) as stream,
            ):
                videos = [stream.video.id]
                watch_stream(stream, _AskingListener(asked, film), direct=True)
            for kind, question, wanted in people_questions(film):
                asked.ask(f"of the stream, {kind}", question, wanted, videos)
            yield from asked.lines()


class _AskingListener(SilentListener):
    """Asks about each clip of a stream as soon as it is remembered: who did the first thing."""

    def __init__(self, asked: Asked, film: Film) -> None:
        self._asked, self._film = asked, film

    def remembered(self, video: Video, clip: int) -> None:
        """Ask about somebody who has said their name by then."""
        named = {one.who for one in self._film if one.speaks and one.end_s <= CLIP_S * (clip + 1)}
        for one in _whole(self._film, [clip]):
            if one.who in named and not one.speaks:
                question = f"Who {one.act} the {one.thing}?"
                self._asked.ask("while it streams, who", question, one.text, [video.id])
                break


def main() -> None:
    """Make the films, and print what is shown and answered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=int, nargs="?", default=1_800, help="of the first film")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        films = {
            1: nameless_film(seconds, 1),
            2: nameless_film(min(seconds, 300), 2),
            3: peopled_film(min(seconds, 600), 3),
        }
        paths = {n: Path(folder) / f"{n}.{'ts' if n == 3 else 'mp4'}" for n in films}
        for number, film in films.items():
            write_film(paths[number], film, number)
        print("people, as a file and as a stream")
        print(*measure_people(films[3], 3, paths[3]), sep="\n", flush=True)
        print("the profile as it is shipped")
        two = {1: films[1], 2: films[2]}
        print(*measure(two, [paths[1], paths[2]]), sep="\n", flush=True)
        for twice in (False, True):
            print(f"a writer that overlooks half, {'with' if twice else 'without'} a second look")
            print(*measure({2: films[2]}, [paths[2]], second_look=twice), sep="\n", flush=True)


if __name__ == "__main__":
    main()
