"""Patterns that recognise questions about structure, in English.

Conservative: a pattern must match the whole question; what none matches is searched as usual.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.reasoners.question_parts import question_parts_of
from domain.search import Asks, Structure
from domain.things import KIND_WORDS
from retrieval.heuristics.language import is_english

LONGEST, MOST_SPACED = 300, 3_000
"""Characters of a question at most, with single spaces and as it is written: longer ones say more
than these patterns capture."""

_NOUN = (
    "(?:video|clip|film|movie|recording|footage|stream|trailer|talk|speech|lecture|lesson|meeting"
    "|interview|conversation|discussion|presentation|podcast|episode|show|documentary|vlog|session"
    "|scene|story|call|debate|broadcast|tutorial)"
)
IT = rf"(?:(?:the|this|that) (?:whole |entire |short )?{_NOUN}(?: clip)?|it|this|that)"
_SPOT = "the (?:room|picture|group|frame|screen|table|audience)"
AT = rf"(?: (?:(?:in|of|on|at|during|throughout) (?:{IT}|{_SPOT})|here|there|in all|altogether))*"
PEOPLE = "(?:people|persons?|individuals|participants|faces|characters|humans)"
IS = "(?:is|are|was|were)"
DO = "(?:do|does|did)"
SEE = "(?:can be seen|can (?:you|we|one) see|do (?:you|we) see)"
SHOWN = "(?:shown|seen|visible|present|featured|pictured|filmed|involved|on (?:the )?screen)"
APPEAR = "(?:appears?|shows? up|takes? part|participates?|features?)"
SPEAK = rf"(?:speaks?|talks?|{IS} (?:speaking|talking|heard)|can be heard|says? (?:some|any)thing)"
BEGIN = "(?:begins?|starts?(?: off| out)?|opens?|kicks? off)"
STOP = "(?:ends?|finish(?:es)?|concludes?|stops?|closes?|wraps? up)"
AT_START = "(?:(?:right )?(?:at|in) the (?:very )?(?:beginning|start|opening|outset))"
AT_END = "(?:(?:right )?(?:at|in) the (?:very )?(?:end|close|finish|conclusion))"
WHOM = r"(?:he|she|they|we|you|someone|the \w+|[a-z]+)"
SAID = (
    "(?:mentioned|named|said|talked about|spoken of|discussed|brought up|heard|referred to"
    "|introduced|explained)"
)
COMES_UP = f"(?:{SAID}|comes? up|came up)"
TELL = "(?:mentions?|names?|talks? about|speaks? of|discuss(?:es)?|brings? up)"
SEEN = f"(?:{SHOWN}|displayed|appears?|appearing|appeared|shows? up|showed up)"
HAPPEN = "(?:happens?|occurs?|takes? place|starts?|begins?)"
ORDER = "(?P<order>first|last|for the (?:very )?(?:first|last) time)"
TIME = "the (?:very )?(?P<order>first|last) time(?: that)?"
SIDE = "(?:right |just |immediately |directly |shortly |straight )?(?P<side>after|before|following)"
X = "(?P<subject>.+?)"
TO_COME = r"(?P<subject>.+)"
CREDITS = "(?P<subject>(?:the )?(?:(?:opening|closing|end|final) )?credits)"
IN_PLACE = (
    "(?P<subject>(?:sit|sitting|seated|stand|standing|gathered|wait|waiting|lined up) "
    "(?:in|on|at|around|by|near|behind|beside|before|against|next to) .{1,80})"
)
WHEN = "(?:when|at what times?|at which point)"
_VIDEO = f"(?:in )?(?:what|which) {_NOUN}"
WHERE = f"(?:(?:where|{_VIDEO})(?: and when)?|when and (?:where|{_VIDEO}))"
HOW_MANY = "how many (?:different )?"

_RULES: tuple[tuple[Asks, str, str], ...] = (
    (Asks.PEOPLE, "", f"who(?: all)? {IS}(?: {SHOWN}| part)?{AT}"),
    (Asks.PEOPLE, "", f"who(?: all)? (?:{APPEAR}|{SEE}){AT}"),
    (Asks.PEOPLE, "", f"(?:which|what) {PEOPLE} (?:{APPEAR}|{SEE}|{IS} {SHOWN}){AT}"),
    (Asks.PEOPLE, "", f"(?:name|list) (?:everyone|everybody|(?:all )?(?:the )?{PEOPLE}){AT}"),
    (Asks.SPEAKERS, "said", f"who(?: all)? {SPEAK}{AT}(?:,? and)?(?: when)?{AT}"),
    (Asks.SPEAKERS, "said", f"who does the (?:talking|speaking){AT}"),
    (Asks.SPEAKERS, "said", f"who {IS} the speakers?{AT}"),
    (Asks.SPEAKERS, "said", f"{WHEN} {DO} (?:who|everyone|everybody|each \\w+) {SPEAK}{AT}"),
    (Asks.SPEAKERS, "said", f"{WHEN} {DO} {X} (?:speak|talk|say (?:some|any)thing){AT}"),
    (Asks.SPEAKERS, "said", f"{WHEN} {IS} {X} (?:speaking|talking|heard){AT}"),
    (Asks.COUNT, "said", f"{HOW_MANY}(?:{PEOPLE}|speakers|voices) {SPEAK}{AT}"),
    (Asks.COUNT, "said", f"{HOW_MANY}(?:speakers|voices) {IS}(?: there| heard)*{AT}"),
    (Asks.COUNT, "said", f"{HOW_MANY}(?:speakers|voices) (?:can|do) (?:you|we) hear{AT}"),
    (Asks.COUNT, "", f"{HOW_MANY}{PEOPLE} {IS}(?: there)?(?: {SHOWN})?{AT}"),
    (Asks.COUNT, "", f"{HOW_MANY}{PEOPLE} (?:{APPEAR}|{SEE}){AT}"),
    (Asks.COUNT, "", f"{HOW_MANY}{PEOPLE} (?:{IS} )?{IN_PLACE}"),
    (Asks.ABOUT, "", f"what {IS} {IT} (?:all |mainly |mostly |really |basically )?about"),
    (Asks.ABOUT, "", f"what {IS} the (?:main |overall )?(?:topic|subject|theme|gist)(?: of {IT})?"),
    (Asks.ABOUT, "", f"what {DO} (?:he|she|they|the \\w+) (?:talk|speak) about{AT}"),
    (Asks.ABOUT, "", f"what {DO} {IT} (?:deal with|cover|talk about)"),
    (Asks.ABOUT, "", f"what {IS} (?:being )?(?:talked|spoken) about{AT}"),
    (Asks.ABOUT, "", f"(?:please )?(?:summari[sz]e|sum up) {IT}"),
    (Asks.ABOUT, "", f"what happens in {IT}"),
    (Asks.ABOUT, "", f"(?:what|which) (?:topic|subject|theme)s? {IS} (?:{SAID}|covered){AT}"),
    (Asks.BEGINNING, "", f"how {DO} {IT} {BEGIN}"),
    (Asks.BEGINNING, "", f"(?:with )?what {DO} {IT} {BEGIN}(?: with)?"),
    (Asks.BEGINNING, "", f"what (?:happens|happened|{IS}) (?:first|{AT_START}){AT}"),
    (Asks.BEGINNING, "", f"what {IS} the (?:very )?first thing(?: that)?(?: happens)?{AT}"),
    (Asks.BEGINNING, "said", f"what {IS} (?:said|heard) (?:first|{AT_START}){AT}"),
    (Asks.BEGINNING, "said", f"what {DO} {WHOM} say (?:first|{AT_START}){AT}"),
    (Asks.BEGINNING, "said", f"what {IS} the (?:very )?first (?:words?|sentences?)(?: said)?{AT}"),
    (
        Asks.BEGINNING,
        "said",
        f"what {IS} the (?:very )?first thing (?:that )?(?:is )?(?:said|heard){AT}",
    ),
    (Asks.BEGINNING, "said", f"what {IS} the (?:very )?first thing (?:that )?{WHOM} says?{AT}"),
    (Asks.BEGINNING, "shown", f"what {IS} {SHOWN} (?:first|{AT_START}){AT}"),
    (Asks.BEGINNING, "shown", f"what {DO} (?:we|you) see (?:first|{AT_START}){AT}"),
    (
        Asks.BEGINNING,
        "shown",
        f"what {IS} the (?:very )?first thing (?:that )?(?:is |we |you )?(?:shown|seen?){AT}",
    ),
    (Asks.END, "", f"how {DO} {IT} {STOP}"),
    (Asks.END, "", f"(?:with )?what {DO} {IT} {STOP}(?: with)?"),
    (Asks.END, "", f"what (?:happens|happened|{IS}) (?:last|{AT_END}){AT}"),
    (Asks.END, "", f"what {IS} the (?:very )?last thing(?: that)?(?: happens)?{AT}"),
    (Asks.END, "said", f"what {IS} (?:said|heard) (?:last|{AT_END}){AT}"),
    (Asks.END, "said", f"what {DO} {WHOM} say (?:last|{AT_END}){AT}"),
    (Asks.END, "said", f"what {IS} the (?:very )?last (?:words?|sentences?)(?: said)?{AT}"),
    (Asks.END, "said", f"what {IS} the (?:very )?last thing (?:that )?(?:is )?(?:said|heard){AT}"),
    (Asks.END, "said", f"what {IS} the (?:very )?last thing (?:that )?{WHOM} says?{AT}"),
    (Asks.END, "shown", f"what {IS} {SHOWN} (?:last|{AT_END}){AT}"),
    (Asks.END, "shown", f"what {DO} (?:we|you) see (?:last|{AT_END}){AT}"),
    (
        Asks.END,
        "shown",
        f"what {IS} the (?:very )?last thing (?:that )?(?:is |we |you )?(?:shown|seen?){AT}",
    ),
    (Asks.WHEREABOUTS, "shown", f"{WHERE} (?:{IS}|{DO}|has|have) {X} last (?:been )?{SEEN}{AT}"),
    (Asks.WHEREABOUTS, "shown", f"{WHERE} (?:{IS}|has|have) {X} (?:been )?{SEEN} last{AT}"),
    (Asks.WHEREABOUTS, "shown", f"{WHERE} (?:{DO}) (?:we|you|i) last see {X}{AT}"),
    (Asks.FIRST, "said", f"{WHEN} (?:{IS}|{DO}) {X} {ORDER} {COMES_UP}{AT}"),
    (Asks.FIRST, "said", f"{WHEN} (?:{IS}|{DO}) {X} {COMES_UP} {ORDER}{AT}"),
    (Asks.FIRST, "said", f"{WHEN} {DO} {WHOM} {ORDER} {TELL} {X}{AT}"),
    (Asks.FIRST, "said", f"{WHEN} {DO} {WHOM} {TELL} {X} {ORDER}{AT}"),
    (Asks.FIRST, "said", f"{WHEN} {IS} the (?P<order>first|last) mention of {X}{AT}"),
    (Asks.FIRST, "said", f"{WHEN} {IS} {TIME} {WHOM} {TELL} {X}{AT}"),
    (Asks.FIRST, "said", f"{WHEN} {IS} {TIME} {X} (?:{IS} )?{COMES_UP}{AT}"),
    (Asks.FIRST, "shown", f"{WHEN} (?:{IS}|{DO}|can) {X} {ORDER} (?:be )?{SEEN}{AT}"),
    (Asks.FIRST, "shown", f"{WHEN} (?:{IS}|{DO}|can) {X} (?:be )?{SEEN} {ORDER}{AT}"),
    (Asks.FIRST, "shown", f"{WHEN} (?:{DO}|can) (?:we|you) {ORDER} see {X}{AT}"),
    (Asks.FIRST, "shown", f"{WHEN} (?:{DO}|can) (?:we|you) see {X} {ORDER}{AT}"),
    (Asks.FIRST, "shown", f"{WHEN} {IS} {TIME} {X} (?:{IS} |can be )?{SEEN}{AT}"),
    (Asks.FIRST, "", f"{WHEN} {DO} {X} {ORDER} {HAPPEN}{AT}"),
    (Asks.FIRST, "", f"{WHEN} {DO} {X} {HAPPEN} {ORDER}{AT}"),
    (
        Asks.FIRST,
        "shown",
        f"{WHEN} {DO} {CREDITS} (?:roll|start|begin|appear|come(?: up| on)?|run){AT}",
    ),
    (Asks.FIRST, "shown", f"{WHEN} {IS} {CREDITS} shown{AT}"),
    (Asks.AFTER, "said", f"what {IS} {SAID} (?:next )?{SIDE} {TO_COME}"),
    (Asks.AFTER, "said", f"what {DO} {WHOM} (?:say|mention|talk about) (?:next )?{SIDE} {TO_COME}"),
    (Asks.AFTER, "", f"what (?:happens|happened|comes?|came) (?:next )?{SIDE} {TO_COME}"),
    (Asks.AFTER, "shown", f"what {IS} {SHOWN} (?:next )?{SIDE} {TO_COME}"),
    (Asks.AFTER, "", f"what (?P<side>follows|precedes) {TO_COME}"),
)
_COMPILED = tuple((asks, how, re.compile(rule, re.IGNORECASE)) for asks, how, rule in _RULES)

_CLOTHES = "(?:shirts?|clothes|clothing|hats?|glasses|dress|jackets?|suits?|ties?|shoes|outfit)"
_BODY = "(?:hands?|arms?|eyes|face|head|fingers?|body|legs?|feet|mouth|hair)"
_ACTS = (
    "(?:smil|laugh|frown|cry|nod|wav|gestur|point|blink|wink|danc|jump|runn?|walk|stand|sitt?|lean"
    "|hold|touch|hugg?|kiss|clapp?|sleep|eat|drink|cook|kneel|star)"
)
_PERSON = r"(?:the|a|an|any|some|one|every|his|her|their|he|she|they|anyone|anybody|somebody|who)\b"
_FEW = rf"(?!(?:{IS}|{DO})\b)\S+(?: \S+)?"
_SOME = r"\S+(?: \S+){0,5}"
_UNSEEN: tuple[tuple[Asks, str], ...] = (
    (Asks.LOOKS, r"(?:of |in )?(?:what|which) colou?rs?\b.*"),
    (Asks.LOOKS, rf"(?:what|which) (?:kind|sort|type)s? of {_CLOTHES}\b.*"),
    (Asks.LOOKS, rf"(?:what|which) {_FEW} (?:{IS}|{DO}) .*\b(?:wear(?:ing)?|dressed in)"),
    (Asks.LOOKS, rf"what {IS} {_SOME} wearing\b.*"),
    (Asks.LOOKS, rf"what {DO} {_SOME} (?:wear|look like)\b.*"),
    (Asks.LOOKS, rf"how {IS} .*\bdressed\b.*"),
    (Asks.LOOKS, rf"(?:{IS}|{DO}) .*\b(?:wear(?:s|ing)?|dressed)\b.*"),
    (Asks.LOOKS, r"who (?:wears|is wearing)\b.*"),
    (
        Asks.LOOKS,
        rf"(?:{IS}|{DO}|has|have) (?:the|a|an|he|she|they) .*\b(?:bald|beard|moustache)\b.*",
    ),
    (Asks.ACTION, r"(?:what|which) (?:gesture|facial expression|expression|pose|posture)s?\b.*"),
    (Asks.ACTION, rf"what {DO} .+ do with (?:his|her|their|its|the) {_BODY}{AT}"),
    (Asks.ACTION, rf"what {IS} .+ doing with (?:his|her|their|its|the) {_BODY}{AT}"),
    (Asks.ACTION, rf"what {IS} {_PERSON}.* holding\b.*"),
    (Asks.ACTION, rf"how {DO} {_PERSON}.* (?:stand|sit|move|gesture|hold|walk|smile)\b.*"),
    (Asks.ACTION, rf"{IS} {_SOME} {_ACTS}ing\b.*"),
    (Asks.ACTION, rf"{DO} {_SOME} {_ACTS}[a-z]?\b.*"),
    (Asks.NUMBER, r"how many (?!times)(?P<subject>.+)"),
)
_SIDE = (
    "(?:behind|beside|next to|in front of|above|below|under|underneath|beneath|left of|right of"
    "|to the (?:left|right) of|on the (?:left|right) of)"
)
_STANDS = "(?:stands?|hangs?|lies?|sits?|(?:can|could) be seen|(?:can|do) (?:you|we|one) see)"
_HANDLE = (
    "(?:hold|carry|lift|typ|drink|eat|rid|driv|wav|throw|push|pull|cook|pour|wash|sit|sitt|stand"
    "|lean|ly|play)"
)
_UNSEEN_OF_ONE: tuple[tuple[Asks, str], ...] = (
    (
        Asks.THINGS,
        rf"(?:what|which) (?:(?:kind|sort|type)s? of )?(?:{KIND_WORDS}) (?:{IS}|{_STANDS}|appears?)"
        r"\b.*",
    ),
    (Asks.THINGS, rf"what (?:{IS}|{_STANDS})(?: \w+)? {_SIDE} .+"),
    (Asks.THINGS, rf"what {IS} (?!(?:\S+ ){{1,3}}of\b){_SOME} {_HANDLE}ing\b.*"),
    (Asks.LOOKS, rf"what {DO} {_SOME} have (?:on|around|over) (?:his|her|their) .+"),
    (Asks.ACTION, rf"what {DO} {_SOME} do with (?:a|an|the|his|her|their|its) .+"),
    (Asks.ACTION, rf"what {IS} {_SOME} doing (?:with|to|at|in|on|near|by|beside|behind) .+"),
)
"""Rules for questions that ask one thing."""
_OF_SPEECH = re.compile(
    r"\b(?:says?|said|mention(?:s|ed)?|talks?|talked|tells?|told|speaks? of|names?|named|called"
    r"|according|recommend(?:s|ed)?|claims?|claimed|explains?|explained|reads?|written)\b",
    re.IGNORECASE,
)
"""Words of questions about speech or writing, which are not about looks, counts or actions."""
_COMPILED_UNSEEN = tuple((asks, re.compile(rule, re.IGNORECASE)) for asks, rule in _UNSEEN)
_COMPILED_UNSEEN_OF_ONE = tuple(
    (asks, re.compile(rule, re.IGNORECASE)) for asks, rule in _UNSEEN_OF_ONE
)

_SPACE = re.compile(r"\s+")
_IS_SHORT = re.compile(r"^(what|who|when|how)['’]s\b", re.IGNORECASE)
_ANCHOR_END = re.compile(
    rf"\s+(?:{IS}|has been|have been) (?:{SAID}|{SHOWN}|over|done)$|\s+(?:comes? up|appears?)$",
    re.IGNORECASE,
)
_ANCHOR_START = re.compile(
    rf"^(?:(?:he|she|they|{WHOM} \w+|the \w+) (?:says?|said|{TELL})|(?:saying|mentioning)"
    r"|the (?:mention|part|moment|scene) (?:of|about|where|when|in which))(?: that)?\s+",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)
_WITH_OPTIONS = frozenset({Asks.COUNT, Asks.BEGINNING, Asks.END})
_QUOTES = "\"'“”‘’«»„"


def structure_of(question: str, options: Sequence[str] = ()) -> Structure | None:
    """Return what a question asks of structure; None for an ordinary question.

    With options, only structures that can be compared with them are recognised, and nothing is
    declined. The rules are for English.
    """
    if len(question) > MOST_SPACED:
        return None
    text = normalise_question(question)
    if not text or len(text) > LONGEST or not is_english(question):
        return None
    recognised = _recognised(text)
    if options:
        return recognised if recognised is not None and recognised.asks in _WITH_OPTIONS else None
    return recognised or _undescribed(text)


def normalise_question(question: str) -> str:
    """Normalise a question: no final mark, single spaces, "what's" written out."""
    text = _SPACE.sub(" ", question).strip().rstrip("?？.! ").strip()
    return _IS_SHORT.sub(lambda match: f"{match[1]} is", text)


def _recognised(text: str) -> Structure | None:
    for asks, manner, rule in _COMPILED:
        if (match := rule.fullmatch(text)) is not None:
            named = {name: value or "" for name, value in match.groupdict().items()}
            return _structure(asks, manner, named)
    return None


def _structure(asks: Asks, manner: str, named: dict[str, str]) -> Structure:
    subject = named.get("subject", "").strip()
    if asks is Asks.FIRST:
        last = "last" in named.get("order", "").lower()
        return Structure(asks=Asks.LAST if last else asks, subject=_thing(subject), manner=manner)
    if asks is Asks.AFTER:
        before = named["side"].lower() in ("before", "precedes")
        anchor = _anchor(subject)
        return Structure(asks=Asks.BEFORE if before else asks, subject=anchor, manner=manner)
    return Structure(asks=asks, subject=subject, manner=manner)


def _thing(subject: str) -> str:
    return _ARTICLE.sub("", subject).strip(_QUOTES + " ")


def _anchor(subject: str) -> str:
    """Return the moment that something comes after or before, without introductory words."""
    trimmed = _ANCHOR_END.sub("", subject.strip())
    return _thing(_ANCHOR_START.sub("", trimmed).strip() or trimmed)


def _undescribed(text: str) -> Structure | None:
    if _OF_SPEECH.search(text):
        return None
    rules = _COMPILED_UNSEEN
    if not question_parts_of(text):
        rules += _COMPILED_UNSEEN_OF_ONE
    for asks, rule in rules:
        if (match := rule.fullmatch(text)) is not None:
            return Structure(asks=asks, subject=match.groupdict().get("subject") or text)
    return None
