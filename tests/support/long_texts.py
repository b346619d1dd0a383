"""What reads words from outside, and long texts that have kept such readers busy for minutes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from agent.harness import constrain, inform
from agent.harness.verify_and_correct import fingerprint, keywords
from agent.reasoners import concluding, replies
from agent.reasoners.replies import read_lines
from benchmarks.perception.metrics import words_of
from domain import words
from domain.media import IdentityKind
from domain.memories import MemorySource
from domain.people import Character, Identity, escape_tags, tags_in_words
from domain.sentences import ends_sentence, split_sentences, split_utterance
from domain.settings import MemorySettings, WatchSettings
from domain.time import TimeSpan, parse_clock
from domain.watching import parse_when
from domain.words import make_storable
from evals.datasets import films, streams
from flows.uploads import safe_name
from graphs.forks import read_plan
from memory.captions import caption_clips, read_captions, spoken_lines
from memory.delete_span import quotes_any
from memory.patches import PatchContext, WrittenPatch, check_patch, drop_invalid_items
from memory.subtitles import cues_to_utterances
from memory.writers.local_clip import LocalClipWriter
from memory.writers.local_event import LocalEventWriter, find_stated_causes
from memory.writers.port import ClipContext, EventWindow, WindowLine
from memory.writers.segment_labels import phrases
from models.chat import read_value
from models.structured import is_complete_object, read_object
from people.characters import ClipPeople
from people.names import NameEraser, introduced_name, is_name_plate
from retrieval import people_in_query, terms
from retrieval.heuristics import questions
from retrieval.heuristics.questions import detect_language, language_note
from telemetry.redaction import redact_log
from tests.support.memory import VIDEO, face, percept, said, span, text_at
from ui.formatting import escape_markdown

Reader = Callable[[str], object]

RUNS = (
    *("a", " ", "9", "\n", ".", '"', "<", "{", "[", "\\", "中", "。", "&", "-", "\u202e"),
    *("a ", "Ab ", "word ", "A. ", "Hm. ", "because ", "a because b ", "It rains because of it. "),
    *("x causes y, so that z. ", "my name is ", "Hello I'm Al ", "Dr. ", "?! ", '." ', "…"),
    *("<v a", "<v.b ", "<memory ", "{\\an8}", "&#9", "&#x9;", "\\N", "\\n", "<face_1> ", "<face_"),
    *(
        '{"a":',
        '"a":',
        '"a',
        "'a' ",
        "[1,",
        '["',
        "\\u00",
        '{"a":1}',
        ",",
        ":",
        ", ",
        "} ",
        "null ",
    ),
    *("00:", "00:00:01,000 --> ", "1\n", "\n\n", "A, ", "a | ", "Action: ", "Content: x\n"),
    *("ago ", "two days ago ", "now, ", "who and what ", "t1, ", "(after t1, ", "m1, ", "[m1 "),
    *("the last time ", "http://a.b ", "a=[", 'a="\\"', ":a", "a/", "\x00", "\u2028", "O'a "),
)
"""What long texts are made of."""


def texts(length: int) -> list[str]:
    """Texts of about ``length`` characters, some with a beginning or an end that does not fit."""
    bodies = [run * (length // len(run)) for run in RUNS]
    digits = "9" * length
    numbers = (f"<face_{digits}>", f"&#{digits};", f"k{digits}", f"{digits} hours ago")
    long = (*bodies, *numbers, *(f":{'a' * length}", f"the answer is{' ' * length}."))
    return [text for body in long for text in (body, f"x {body} x", f'{{"{body}')]


PERSON = Character(number=2, name="Al Bo", faces=(1,), voices=(7,), aliases=("Cy",))
PEOPLE = ClipPeople(
    faces={0: Identity(id=1, kind=IdentityKind.FACE, number=1, first_clip=0)},
    voices={0: Identity(id=2, kind=IdentityKind.VOICE, number=7, first_clip=0)},
    characters=(PERSON,),
)
CAST = people_in_query.ViewPeople((people_in_query.ViewPerson(VIDEO, PERSON),))
SETTINGS = MemorySettings()
AT = "2025-01-01T00:00:00.000+00:00"
TIMES = np.array([60.0, 7_200.0])


def _file(ending: str, before: str, after: str = "\n") -> Reader:
    def read(text: str) -> object:
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"a{ending}"
            path.write_text(f"{before}{text}{after}", errors="surrogatepass")
            clips = list(caption_clips(read_captions(path), WatchSettings()))
        return [
            cues_to_utterances([(one.span, one.text) for one in clip.utterances]) for clip in clips
        ]

    return read


def _row(text: str) -> object:
    row = json.dumps({"start": 1, "end": 2, "text": text, "speaker": text})
    return _file(".jsonl", row)("")


def _clip(text: str) -> object:
    seen = percept(
        0,
        utterances=(said(1, text, voice=0),),
        captions=(said(1, text),),
        screen_texts=(text_at(1, text), text_at(1, "Ann Lee", 1)),
        faces=(face(0, 1, (0, 5)),),
    )
    return LocalClipWriter().write(seen, PEOPLE, ClipContext(VIDEO))


def events(text: str) -> object:
    """The event writer, over ten clips in which all of ``text`` is said."""
    clips = {number: span(30 * number, 30 * number + 30) for number in range(10)}
    parts = [part for part, _ in split_utterance(said(0, text))]
    lines = [
        WindowLine(clip, clips[clip], part, MemorySource.SAID, np.ones(4, np.float32))
        for place, part in enumerate(parts)
        for clip in (10 * place // len(parts),)
    ]
    window = EventWindow(VIDEO, 9, clips, tuple(clips), tuple(lines))
    return LocalEventWriter(SETTINGS).patch(window)


def _patch(text: str) -> object:
    watched = {number: span(30 * number, 30 * number + 30) for number in range(5)}
    ground = PatchContext(4, (3, 4), watched, {}, frozenset())
    segment = {"label": text, "summary": text, "clips": (3, 4)}
    patch = WrittenPatch.model_validate({"segments": [segment]})
    kept, _ = drop_invalid_items(patch, ground, SETTINGS)
    return check_patch(kept, ground, SETTINGS)


def _each(*readers: Reader) -> Reader:
    return lambda text: [read(text) for read in readers]


READERS: dict[str, Reader] = {
    "sentences": _each(split_sentences, ends_sentence, lambda text: split_utterance(said(0, text))),
    "causes": find_stated_causes,
    "names": _each(
        lambda text: introduced_name(said(0, text)), lambda text: is_name_plate(text, text)
    ),
    "plates": lambda text: is_name_plate("Ann Lee", text),
    "labels": lambda text: list(phrases(text)),
    "captions as JSON lines": _each(_row, _file(".jsonl", "")),
    "captions as SubRip": _file(".srt", "1\n00:00:01,000 --> 00:00:02,500\n", "\nx\n"),
    "captions as WebVTT": _file(".vtt", "WEBVTT\n\n00:01.000 --> 00:02.500\n", "\nx\n"),
    "subtitles": lambda text: list(spoken_lines([(TimeSpan.of(0, 1000), text)] * 4)),
    "clip writer": _clip,
    "event writer": events,
    "patches": _patch,
    "people": _each(PEOPLE.update_names, escape_tags, tags_in_words, CAST.terms_of),
    "forgetting": _each(NameEraser(["<face_1>"], ["Al Bo"], ["Cy"]).erase, make_storable),
    "told words": lambda text: quotes_any(text, ["a"], ["m1"]),
    "search terms": _each(terms.terms, detect_language, lambda text: language_note(text, ["en"])),
    "times": _each(
        lambda text: questions.temporal_fit(text, TIMES, 9_000.0),
        lambda text: questions.are_times((text, text), 9_000.0),
    ),
    "questions": _each(
        lambda text: questions.statement(text, text),
        lambda text: questions.statement(f"Who did {text}", text),
        lambda text: concluding.decompose(text, ()),
        concluding.kind_of,
    ),
    "structure": _each(questions.order_of, questions.asked_type),
    "options": lambda text: constrain.chosen_letter(text, (text, "b")),
    "queries": _each(
        constrain.is_asked,
        keywords,
        lambda text: fingerprint([text], text),
    ),
    "prompts": _each(inform.quote_untrusted, inform.quote_label),
    "replies as JSON": _each(
        lambda text: read_value(f'{{"a": {text}', replies.ActReply),
        lambda text: read_value(text, replies.ActReply),
        is_complete_object,
    ),
    "broken JSON": lambda text: read_object(f'{{"a": {text}'),
    "replies as lines": _each(read_lines, lambda text: read_lines(f"Action: answer\n{text}")),
    "citations": lambda text: (replies.refs_in([text]), replies.subtasks_in([text])),
    "file names": safe_name,
    "log lines": lambda text: list(redact_log([f"{AT} info clip done: {text}"])),
    "pages": escape_markdown,
    "terminals": words.plain_line,
    "plans": lambda text: read_plan(text, ()),
    "times and days": _each(parse_when),
    "clock": parse_clock,
    "data sets": _each(
        words_of,
        films.split_options,
        films.spans,
        lambda text: streams.joined_options([f"A. {text}", text]),
    ),
}
"""By what they read."""

REFUSALS: dict[str, type[Exception]] = {"broken JSON": ValueError, "clock": ValueError}
"""What readers raise, beside Homer's errors, where a text is not theirs."""
