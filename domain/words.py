"""Words that are shown: marked for translation, and harmless where they come from outside.

Any layer marks the words of the app, which are then in the catalogues; only the app has readers of
languages other than English (``ui.language``).

Nothing else makes text harmless. A terminal gets ``printable`` or ``plain_line``, a client that
chats (MCP, chat completions) ``client_text``. Markdown escapes ``without_markup``, HTML needs no
more than ``html.escape``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from contextvars import ContextVar
from gettext import NullTranslations
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from domain.time import TimeSpan


def marked(text: str) -> str:
    """Return a text unchanged; it is in the catalogue, and is translated where it is shown.

    An f-string is in the catalogue with numbers for its values: ``{0} of {1}``. The page translates
    it with ``domain.words.translate_sentence``.
    """
    return text


def marked_each(*texts: str) -> tuple[str, ...]:
    """Return texts unchanged; each is in the catalogue, as with ``marked``."""
    return texts


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
WORD_JOINER = "\u2060"
"""Invisible and without width; what contains it is no link and no picture."""
JOINERS = "\u200c\u200d"
"""Invisible, but part of words in some scripts, and of some emoji."""


def make_storable(text: str) -> str:
    """Replace characters that cannot be stored (NUL and lone surrogates) by U+FFFD."""
    return _UNSTORABLE.sub("�", text)


def strip_invisible(text: str) -> str:
    """Remove invisible characters, which only a machine would read; spaces stay spaces."""
    if text.isprintable():
        return text
    seen = (char in JOINERS or unicodedata.category(char) not in ("Cc", "Cf") for char in text)
    return "".join(
        char if is_seen else " " if char.isspace() else ""
        for char, is_seen in zip(text, seen, strict=True)
    )


def one_line(text: str) -> str:
    """Return a text on one line, without invisible characters, with single spaces."""
    return " ".join(strip_invisible(text).split())


_UPWARD = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
)
_TENS = "thirty forty fifty sixty seventy eighty ninety hundred"
_LARGE = {"none": 0, "dozen": 12, "thousand": 1_000, "million": 1_000_000, "billion": 10**9}
_WORD = (
    {word: number for number, word in enumerate(_UPWARD.split())}
    | {word: 10 * tens for tens, word in enumerate(_TENS.split(), start=3)}
    | _LARGE
)
_CLOCK = r"\d{1,9}(?::\d\d)+"
_NOT_COUNTS = re.compile(rf"<\w{{1,40}}>|\[?(?<!\d){_CLOCK}(?:\.\d+)?(?:-{_CLOCK})?\]?")
_NUMBER = re.compile(rf"\b(?:\d{{1,15}}|{'|'.join(_WORD)})\b", re.I)


def first_number(text: str) -> int | None:
    """Return the first number in a text, or None; times and tags of people do not count."""
    match = _NUMBER.search(_NOT_COUNTS.sub(" ", text))
    if match is None:
        return None
    word = match[0].lower()
    return int(word) if word.isdecimal() else _WORD[word]


def has_number(text: str) -> bool:
    """Check whether a text has a number other than times and tags of people."""
    return first_number(text) is not None


SAMPLE = "1,234.5%"
"""A number; its translation shows how a language writes numbers."""


class Reader(NullTranslations):
    """A language by its code, with its words. English ones are the keys, and stay as they are."""

    code = "en"

    def sentence(self, text: str) -> str:
        """Return a sentence that has values in it."""
        return text


ENGLISH = Reader()
reader: ContextVar[Reader] = ContextVar("reader", default=ENGLISH)
"""Who reads what is drawn now."""


def translate(text: str) -> str:
    """Return a text in the language of the page; unchanged where the catalogue has none."""
    # To gettext, "" is the key of a catalogue's header.
    return reader.get().gettext(text) if text else text


def translate_count(one: str, many: str, number: int) -> str:
    """Return the form for a number, with the number in place of ``{number}``.

    ``translate_count("{number} day left", "{number} days left", 2)`` is ``2 days left``.
    """
    form = reader.get().ngettext(one, many, number)
    return form.replace("{number}", format_number(number))


def translate_sentence(text: str) -> str:
    """Return a sentence, or one with values in it, in the language of the page.

    ``person 2`` matches ``person {0}`` and becomes ``Person 2``. Values that are sentences of the
    catalogue themselves are translated as well, or lists of some with ``; `` between them.
    """
    # All others stay: a title may be one or two words of the catalogue.
    return reader.get().sentence(text)


def format_number(value: float, spec: str = ",") -> str:
    """Format a number: ``1,234``; with ``.2f`` ``0.85``; with ``.0%`` ``85%``."""
    sample = translate(SAMPLE)
    marks = str.maketrans({",": sample[1], ".": sample[5], "%": sample[7:]})
    return format(value, spec).translate(marks)


_IRREGULAR = {
    "person": "people",
    "piece of evidence": "pieces of evidence",
    "knife": "knives",
    "mouse": "mice",
    "sheep": "sheep",
}

# What is transformed by Streamlit even when each of its characters is escaped, and by others.
_MARKUP = re.compile(
    r"""((?<=[a-z0-9])(?=://) | www(?=\.) | @(?=[-\w])   # a link
    | !(?=\[) | \](?=[(\[:])   # a picture, a link with a text, and where one leads
    | <(?!(?:face|voice|character)_\d{1,9}>)(?=[a-z/!?])   # HTML; tags of people are no elements
    | \$(?=[^\s\d]) | :(?=[a-z]{1,20}\[)   # a formula, a colour
    | :(?=material/|[-+]1:|100:|1234:|(?=[-+\w]++:)[-+\w]*?[a-z_])  # a picture; 0:02:05 is a time
    | (?<!\S)[<>~-](?=(?:->|[->=])(?!\S)))              # an arrow
    """,
    re.IGNORECASE | re.VERBOSE,
)

_PADDED = re.compile(
    r"""(?<![:\d])0(?=\d:\d\d-\d) | (?<=\d-)0(?=\d:\d\d(?!:?\d))
    | (?<=\bat\ )0(?=\d:\d\d(?!:?\d))""",
    re.VERBOSE,
)
"""The zero that ``domain.time.format_clock`` writes before single minutes."""


def plain_line(text: str) -> str:
    """Return ``text`` on one line, without characters that could control a terminal."""
    return printable(text).strip()


def printable(text: str, but: str = "") -> str:
    """Return ``text`` with spaces for unprintable characters, and ``?`` for lone surrogates.

    ``but``: unprintable characters that stay.
    """
    whole = without_surrogates(text)
    return "".join(char if char.isprintable() or char in but else " " for char in whole)


def client_text(text: str) -> str:
    """Return text for a client that may show it as Markdown or in a terminal; it reads alike."""
    # Nothing in it is a link or picture that asks a server for something, nor HTML; and nothing
    # steers a terminal.
    return without_markup("\n".join(printable(line, JOINERS) for line in text.splitlines()))


def client_data(value: Any) -> Any:
    """Return JSON with ``client_text`` in place of every text in it."""
    if isinstance(value, str):
        return client_text(value)
    if isinstance(value, list):
        return [client_data(one) for one in value]
    if isinstance(value, dict):
        return {client_text(key): client_data(one) for key, one in value.items()}
    return value


def without_surrogates(text: str) -> str:
    """Return ``text`` with ``?`` for each lone surrogate."""
    return text.encode("utf-8", "replace").decode("utf-8")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 clip``, ``12 memories``, ``2 people``."""
    one, many = f"{{number}} {noun}", f"{{number}} {plural(noun)}"
    return translate_count(one, many, number)


def capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def join_words(parts: Sequence[str]) -> str:
    """Join parts of a sentence: ``Ann``, ``Ann and Bob``, ``Ann, Bob and Eve``."""
    if len(parts) < 2:
        return "".join(parts)
    return translate("{first} and {last}").format(first=", ".join(parts[:-1]), last=parts[-1])


def plural(noun: str) -> str:
    if noun in _IRREGULAR:
        return _IRREGULAR[noun]
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def without_markup(text: str) -> str:
    """Return ``text`` so that readers of Markdown make no links, pictures or HTML of it."""
    return _MARKUP.sub(rf"\1{WORD_JOINER}", text)


def format_time(ms: int) -> str:
    """Format milliseconds: ``2:05``, ``1:02:05``, or ``d2 1:00:00`` on the second day."""
    days, seconds = divmod(ms // 1000, 86_400)
    minutes, secs = divmod(seconds, 60)
    hours, rest = divmod(minutes, 60)
    if days:
        return f"d{days + 1} {hours}:{rest:02d}:{secs:02d}"
    return f"{hours}:{rest:02d}:{secs:02d}" if hours else f"{rest}:{secs:02d}"


def format_span(span: TimeSpan) -> str:
    """Format a span as ``2:05-2:09``; an empty one as a single time."""
    start, end = format_time(span.start_ms), format_time(span.end_ms)
    return start if start == end else f"{start}-{end}"


def short_times(text: str) -> str:
    """Return ``text`` with ``0:35`` for the times ``00:35`` of spans, and of moments after "at"."""
    return _PADDED.sub("", text)


def shortened(text: str, width: int = 120) -> str:
    """Return ``text`` on one clean line of at most ``width`` characters."""
    line = plain_line(text)
    return line if len(line) <= width else line[: width - 3].rstrip() + "..."
