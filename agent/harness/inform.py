"""Inform: what a reasoner is shown of a retrieval, of the ledger and of its own search.

Words from the memory are data, and so are a planner's and a model's own: they are put between
marks, on one line, without brackets that could form a citation or a mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from pydantic import NonNegativeInt

from agent.harness.constrain import letter
from domain.asking import (
    STRUCTURE,
    Action,
    Evidence,
    Ledger,
    Question,
    Subtask,
    SubtaskState,
    names_image,
)
from domain.base import Frozen
from domain.errors import BlobGone
from domain.people import TAG
from domain.settings import IMAGE_TOKENS
from domain.skills import RoutedSkill, Tone
from domain.time import format_clock
from domain.trajectory import EvidenceRetrieved, Neighbour
from domain.words import strip_invisible
from models.messages import Message, text_tokens

FEW_REFS = 6
"""Refs that a sentence on structure is shown with, at most."""
LINE = 320
"""Characters of one memory that a card shows."""
SUMMARY, WHOLE_SUMMARY = 900, 4_000
"""Characters of a segment's summary that a card shows, and that the final evidence shows."""
MARKS = ("memory", "card", "contents", "ledger", "question", "option", "people", "focus", "subtask")
"""Marks around data; the system prompt says so."""
_MARK = re.compile(
    rf"[<＜]\s*+(?:/\s*+)?(?:{'|'.join(MARKS)})\b[^<＜>＞]*+(?:[>＞]|(?=[<＜]))", re.I
)
_TAGS = re.compile(rf"({TAG.pattern.replace('(', '(?:')})")
_BRACKETS = str.maketrans("<>[]＜＞［］【】⟨⟩", "‹›()‹›()()‹›")


def quote_untrusted(text: str, most: int = LINE) -> str:
    """Return untrusted text as a card may show it: one line, at most ``most`` characters.

    It cannot open or close a mark or form a citation: only people's tags keep their brackets.
    Invisible characters are removed.
    """
    flat = " ".join(_MARK.sub(" ", strip_invisible(text)).split())
    safe = "".join(
        part if TAG.fullmatch(part) else part.translate(_BRACKETS) for part in _TAGS.split(flat)
    )
    return safe if len(safe) <= most else truncated(safe, most - 1)


def truncated(text: str, most: int) -> str:
    """Truncate ``text`` to ``most`` characters without half a tag at the end, and add "…"."""
    text = text[:most]
    half = text.find("<", text.rfind(">") + 1)
    return text[: half if half >= 0 else None].rstrip() + "…"


def quote_label(text: str, most: int = 80) -> str:
    """Return untrusted text made safe between quotation marks."""
    return quote_untrusted(text, most).replace('"', "'")


class CardLine(Frozen):
    """One line of a card; ``score`` is its evidence's, None where it shows no evidence."""

    text: str
    score: float | None = None


def card(retrieval: EvidenceRetrieved, seen: Collection[str], repeats: bool) -> str:
    """Return the card of a search; on a repeated focus only new evidence is spelled out."""
    return "\n".join(line.text for line in card_lines(retrieval, seen, repeats))


def card_lines(
    retrieval: EvidenceRetrieved, seen: Collection[str], repeats: bool
) -> tuple[CardLine, ...]:
    shown = [e for e in retrieval.evidence if not (repeats and e.ref in seen)]
    lines = [f'<card mode="{retrieval.mode}" query="{quote_label(retrieval.query, 120)}">']
    if retrieval.refused:
        lines.append(f"Refused: {quote_untrusted(retrieval.refused, 600)}")
    if retrieval.focus:
        again = " (as before; only what is new follows)" if repeats else ""
        lines.append(f'Focus: [{retrieval.focus}] "{quote_label(retrieval.focus_label)}"{again}')
    for quote in retrieval.quotes:
        if quote.kind == STRUCTURE:
            refs = " ".join(f"[{ref}]" for ref in quote.refs[:FEW_REFS])
            text = quote_untrusted(quote.text, SUMMARY)
            lines.append(f"Read off from structure, in words of the memory: {text} {refs}")
    if retrieval.nothing_close:
        lines.append("Nothing in memory is close to this query.")
    head = [CardLine(text=line) for line in lines]
    evidence = [CardLine(text=memory_line(e), score=e.score) for e in shown]
    tail = ["Nothing new."] if repeats and not shown and not retrieval.refused else []
    tail += [_neighbour(n) for n in retrieval.neighbours if n.of or not repeats]
    return (*head, *evidence, *(CardLine(text=line) for line in [*tail, "</card>"]))


def memory_line(evidence: Evidence, *, whole: bool = False) -> str:
    """Return one memory with its citation, time and score; a summary's beginning, or all of it."""
    summary = WHOLE_SUMMARY if whole else SUMMARY
    most = summary if evidence.ref.startswith("s") else LINE
    head = f'<memory id="[{evidence.ref}]" time="{evidence.span}" score="{evidence.score:.2f}">'
    return f"{head}{quote_untrusted(evidence.full_text, most)}</memory>"


def _neighbour(neighbour: Neighbour) -> str:
    arrow = "->" if neighbour.outgoing else "<-"
    why = f" ({quote_untrusted(neighbour.rationale, 160)})" if neighbour.rationale else ""
    label = quote_label(neighbour.label)
    of = f"[{neighbour.of}] " if neighbour.of else ""
    return f'{of}Neighbour {arrow} {neighbour.relation}: "{label}" [{neighbour.ref}]{why}'


def edge_lines(searches: Sequence[EvidenceRetrieved]) -> Iterable[str]:
    """Return how the events in focus, and of the best lines, stand to others, each once."""
    found = (
        _neighbour(one if one.of else one.model_copy(update={"of": search.focus}))
        for search in searches
        if search.focus
        for one in search.neighbours
    )
    return dict.fromkeys(found)


def content_lines(contents: Sequence[str]) -> str:
    """Return the contents of the videos, one line each event; "" without any."""
    return "\n".join(
        ["<contents>", *map(quote_untrusted, contents), "</contents>"] * bool(contents)
    )


def ledger_lines(ledger: Ledger, current: Subtask | None, full: bool) -> str:
    """Return the ledger: in full if it changed, else in one line."""
    if not full:
        # The plan is shown with the question.
        states = ", ".join(f"{s.id} {s.state}" for s in ledger.subtasks)
        return f"<ledger>unchanged: {states}</ledger>"
    lines = list[str]()
    for one in ledger.subtasks:
        mark = "*" if current is not None and one.id == current.id else "-"
        answer = f": {quote_untrusted(one.answer)}" if one.answer else ""
        known = f" [{len(one.evidence)} pieces of evidence]" if one.evidence else ""
        about = f"{one.id} ({one.state}, {one.attempts} attempts){_after(one)}"
        lines.append(f"{mark} {about} {quote_untrusted(one.text)}{answer}{known}")
    return "\n".join(["<ledger>", *lines, "</ledger>"])


def plan_lines(planned: Ledger) -> str:
    """Return the plan as it is shown once with the question."""
    lines = [f"{s.id}{_after(s)} {quote_untrusted(s.text)}" for s in planned.subtasks]
    return "\n".join(["<ledger>", *lines, "</ledger>"]) if lines else ""


def _after(subtask: Subtask) -> str:
    return f" (after {', '.join(subtask.depends)})" if subtask.depends else ""


def has_news(ledger: Ledger, planned: Ledger) -> bool:
    """Check whether the ledger holds more than the plan and the counts of attempts."""
    return [_news(s) for s in ledger.subtasks] != [_news(s) for s in planned.subtasks]


def _news(subtask: Subtask) -> tuple[object, ...]:
    undecided = (SubtaskState.PENDING, SubtaskState.SEARCHING)
    state = None if subtask.state in undecided else subtask.state
    return subtask.id, subtask.text, state, subtask.answer, subtask.evidence


def question_lines(question: Question) -> str:
    """Return the question with its lettered options and the time it is asked as of."""
    lines = [f"<question>{quote_untrusted(question.text, 2000)}</question>"]
    lines += [
        f'<option letter="{letter(i)}">{quote_untrusted(o, 600)}</option>'
        for i, o in enumerate(question.options)
    ]
    if question.as_of_ms is not None:
        lines.append(
            f"Asked at {format_clock(question.as_of_ms)} of the video; later is not known."
        )
    return "\n".join(lines)


def hint_lines(hints: Sequence[str], complaint: str, final: bool) -> str:
    """Return the harness's messages, the last complaint first."""
    lines = [f"Your last reply was refused: {complaint}"] if complaint else []
    lines += list(hints)
    if final:
        lines.append("This is the last round: answer now if you can.")
    return "\n".join(lines)


def skill_lines(skills: Iterable[RoutedSkill], tone: Tone) -> str:
    """Return the advice of the skills of one tone, one line each, without repeats."""
    advice = (line for skill in skills if skill.tone is tone for line in skill.instructions)
    return "\n".join(f"- {quote_untrusted(line)}" for line in dict.fromkeys(advice))


def people_lines(people: Iterable[tuple[str, str]]) -> str:
    named = [f"{tag} is {quote_untrusted(name, 60)}" for tag, name in people]
    return "<people>" + "; ".join(named) + ".</people>" if named else ""


def focus_line(ref: str, label: str) -> str:
    """Return the segment in focus; no label if there is none."""
    return (
        f'<focus>[{ref}] "{quote_label(label)}"</focus>' if ref else "No segment is in focus yet."
    )


def subtask_line(subtask: Subtask | None) -> str:
    """Return the current subtask, else "the question"."""
    if subtask is None:
        return "the question"
    return f"<subtask>{subtask.id}: {quote_untrusted(subtask.text)}</subtask>"


def action_line(action: Action) -> str:
    if action.kind == "answer":
        return "answer"
    return f"search {action.mode}: {quote_untrusted(action.query, 160)}"


# Shorten: earlier cards in brief, and a request to what a model reads of it.

Card = Sequence[CardLine]

WHOLE = 2
"""The last cards are shown whole, so many."""
LEFT_OUT = "(What this search found is left out here.)"


def earlier_cards(cards: Sequence[Card]) -> list[str]:
    """Return the texts of earlier cards, oldest first; the last ones are whole."""
    # Of older ones the head and the best line: each was read whole before, and what was found in it
    # is in the ledger and in the final evidence.
    brief = max(0, len(cards) - WHOLE)
    shown = [*map(_brief, cards[:brief]), *cards[brief:]]
    return ["\n".join(line.text for line in card) for card in shown]


def _brief(card: Card) -> Card:
    """Return a card with the best of its lines of evidence, and without neighbours."""
    evidence = [line for line in card if line.score is not None]
    if not evidence:
        return card
    best = max(evidence, key=lambda line: line.score or 0.0)
    more = len(evidence) - 1
    note = [CardLine(text=f"({more} more are left out here.)")] if more else []
    return (*card[: card.index(evidence[0])], best, *note, card[-1])


def shortened(messages: Sequence[Message], tokens: int) -> list[Message]:
    """Return a request with at most so many tokens of text, if what was found leaves them.

    The oldest cards go first, then the contents, then those lines of the newest card that scored
    lowest.
    """
    texts = [message.content for message in messages]
    # All marks are the harness's own: quoted words have none (``quote_untrusted``).
    found = [
        (n, card)
        for n, text in enumerate(texts)
        if (card := _part(text, "<card ", "</card>") or _part(text, "<memory ", "</memory>"))
    ]
    cuts = [(n, card, LEFT_OUT) for n, card in found[:-1]]
    cuts += [(n, _part(text, "<contents>", "</contents>\n"), "") for n, text in enumerate(texts)]
    for n, card in found[-1:]:
        lines = [line for line in card.splitlines(keepends=True) if ' score="' in line]
        scores = [float(line.partition(' score="')[2].partition('"')[0]) for line in lines]
        lowest_first = sorted(range(len(lines)), key=lambda at: (scores[at], -at))
        cuts += [(n, lines[at], "") for at in lowest_first]
    for n, part, instead in cuts:
        if sum(map(text_tokens, texts)) <= tokens:
            break
        texts[n] = texts[n].replace(part, instead, 1)
    return [
        message.model_copy(update={"content": text})
        for message, text in zip(messages, texts, strict=True)
    ]


def _part(text: str, first: str, last: str) -> str:
    """Return what is between two marks, with both; "" where they are not there."""
    start, end = text.find(first), text.rfind(last)
    return text[start : end + len(last)] if 0 <= start < end else ""


# Images that searches found, as they are shown to a model: each after its ref and time.

LoadImage = Callable[[str], bytes]
"""Loads a JPEG by its SHA-256; raises ``BlobGone`` if it is missing or damaged."""


class Picture(Frozen):
    """An image that a search found: the SHA-256 of its JPEG, and how evidence names it.

    ``ref`` is "" where a person changed the evidence, so that it is not known which image is whose.
    """

    blob: str
    ref: str = ""
    time_ms: NonNegativeInt = 0

    @property
    def label(self) -> str:
        """Return the text that goes before the image; "" without a ref."""
        return f"[{self.ref}] {format_clock(self.time_ms)}" if self.ref else ""


@dataclass(frozen=True)
class LoadedPictures:
    """Pictures with their files; ``missing`` are the digests of those whose files are gone."""

    pictures: tuple[Picture, ...] = ()
    images: tuple[bytes, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(picture.label for picture in self.pictures)

    @property
    def refs(self) -> tuple[str, ...]:
        return tuple(picture.ref for picture in self.pictures if picture.ref)


def pictures_of(event: EvidenceRetrieved) -> tuple[Picture, ...]:
    """Return the images of a search, best first, each with the ref of its evidence."""
    named = [e for e in event.evidence if names_image(e.ref)]
    if len(named) != len(event.images):
        return tuple(Picture(blob=blob) for blob in event.images)
    return tuple(
        Picture(blob=blob, ref=e.ref, time_ms=e.span.start_ms)
        for e, blob in zip(named, event.images, strict=True)
    )


def by_evidence(pictures: Iterable[Picture], evidence: Sequence[Evidence]) -> list[Picture]:
    by_ref = {picture.ref: picture for picture in pictures if picture.ref}
    return [by_ref[piece.ref] for piece in evidence if piece.ref in by_ref]


def affordable(tokens: int, share: int) -> int:
    """Return how many images fit into one part in ``share`` of the tokens."""
    return max(0, tokens // (share * IMAGE_TOKENS))


def load_pictures(pictures: Iterable[Picture], load: LoadImage) -> LoadedPictures:
    """Load the files of pictures; those that are gone are named."""
    loaded, images, missing = [], [], []
    for picture in pictures:
        try:
            images.append(load(picture.blob))
        except BlobGone:
            missing.append(picture.blob)
        else:
            loaded.append(picture)
    return LoadedPictures(tuple(loaded), tuple(images), tuple(missing))
