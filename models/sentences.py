"""Sentences as spaCy reads them: lemmas, dependencies, noun phrases and named entities."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import WeightsMissing
from domain.people import TAG
from domain.sentences import Mention
from models.weights import verified_folder

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token

ENGLISH = "en"
PIPELINE = "en_core_web_sm"
"""The pipeline for English in the manifest."""

_NAMES = "names"
"""The key in a document's data of names by the number of their token."""
_UNUSED = ("senter",)
"""The parser finds sentences as well, and better."""
_GRAMMAR = ("tagger", "morphologizer", "parser", "attribute_ruler", "lemmatizer")
_BATCH = 256
_MOST_LETTERS = 50_000
"""Letters parsed at once: meanwhile a pipeline holds some 20 kB for each word."""
_LONGEST = 10_000
"""Letters of a text; what follows is not read."""
_STAND_IN = "Mary"
"""What a known name is parsed as: the tagger takes ``<face_3>`` for anything, "Will" for a verb. Of
eight names that were tried, captions of the same moments agree most with this one."""
_PLURALS = ("data", "glasses", "stairs", "thanks")
"""Plurals that mean something else than their singular."""
_DOUBLES = re.compile(r".*[^aeiou][aeiou][^aeiouwxy]")
"""Verbs whose last letter is doubled before an ending: "hop", "hopping"."""


_SAID_OF_PEOPLE = (
    "I spoke with {} yesterday.",
    "My name is {}.",
    "{} smiled and said hello.",
    "{} told me that she was tired.",
    "Everybody likes {}, who works hard.",
)
_MOST_SAY = 4


class SentenceParser:
    """spaCy's pipelines, each loaded on first use; several threads may share them.

    Args:
        weights: the folder of model files; the pipeline for English is checked before it is loaded.
        own: pipelines of the user's by language (ISO 639-1): a folder (``/...``, ``./...``,
            ``~/...``) or an installed package. One for English takes the place of ours.
    """

    def __init__(self, weights: Path, own: Mapping[str, str] | None = None) -> None:
        self._weights, self._own = weights, dict(own or {})
        self._pipelines: dict[str, Language] = {}
        self._words: frozenset[str] = frozenset()
        self._lemmas: dict[tuple[str, str], str] = {}
        self._lock = threading.RLock()

    @property
    def languages(self) -> frozenset[str]:
        return frozenset({ENGLISH, *self._own})

    def require(self) -> None:
        """Check that the pipeline for English is there, without loading it.

        Raises:
            WeightsMissing: it is not; says what to do.
        """
        if ENGLISH not in self._own:
            verified_folder(self._weights, PIPELINE)

    def load(self) -> None:
        """Load the pipeline for English, so that ``WeightsMissing`` is raised early."""
        with self._lock:
            self._pipeline(ENGLISH)

    @contextmanager
    def parsed(
        self,
        texts: Iterable[str],
        *,
        language: str = ENGLISH,
        names: Collection[str] = (),
        only_entities: bool = False,
    ) -> Iterator[Iterator[Doc]]:
        """Yield texts as documents, in order; these are gone when the context ends.

        A text gives the same document whatever is parsed beside it.

        Args:
            language: one of ``languages``.
            names: people whose names are one token each, as are tags such as ``<face_1>``. Another
                name stands there, which is easy to parse; ``name_of`` returns the right one.
            only_entities: find named entities and nothing else, in half the time. No name is
                replaced, so that places are those in the text.

        Raises:
            WeightsMissing: the pipeline is not there; says what to do.
        """
        with self._lock:
            nlp = self._pipeline(language)
            pattern = None
            if not only_entities:
                # Tags and these names, the longest first.
                known = sorted(filter(None, names), key=lambda name: (-len(name), name))
                any_of = "|".join(map(re.escape, known))
                whole = rf"|(?<!\w)(?:{any_of})(?!\w)" if known else ""
                pattern = re.compile(TAG.pattern + whole)
            # Pipelines of others may find entities by what they share; ours does so by itself.
            grammar = _GRAMMAR if language in self._own else (*_GRAMMAR, "tok2vec")
            # spaCy keeps every word that it ever saw, except those of a zone.
            with nlp.memory_zone():
                yield (
                    self._mended(doc) if language == ENGLISH and not only_entities else doc
                    for batch in _batches(texts)
                    for doc in nlp.pipe(
                        [_document(nlp, text, pattern) for text in batch],
                        batch_size=_BATCH,
                        disable=grammar if only_entities else (),
                    )
                )

    def named_entities(
        self, texts: Sequence[str], language: str = ENGLISH
    ) -> list[tuple[Mention, ...]]:
        """Return the named entities of each text, in order, with their places in it.

        A text in capitals, as screens have it, is read with a capital for each word: of names in
        capitals the model finds half, of the same names in mixed case nearly all.

        Raises:
            WeightsMissing: there is no pipeline for the language.
        """
        titles = (text.title() if text.isupper() else text for text in texts)
        # A few letters are two in lower case, after which places would not be those in the text.
        pairs = zip(titles, texts, strict=True)
        read = [new if len(new) == len(old) else old for new, old in pairs]
        with self.parsed(read, language=language, only_entities=True) as documents:
            return [
                tuple(
                    Mention(
                        text=text[one.start_char : one.end_char],
                        label=one.label_,
                        start=one.start_char,
                    )
                    for one in document.ents
                )
                for text, document in zip(texts, documents, strict=True)
            ]

    def is_person(self, name: str) -> bool:
        """Check whether a text has the form of a person's name.

        By itself or in one sentence, a model takes many things for people. Of 69 names and 71 other
        headings that were tried, 59 and 10 are people in four of the five sentences.

        Raises:
            WeightsMissing: the pipeline is not there; says what to do.
        """
        shown = name.title() if name.isupper() else name
        said = self.named_entities([sentence.format(shown) for sentence in _SAID_OF_PEOPLE])
        people = [
            any(one.label == "PERSON" and shown in one.text for one in found) for found in said
        ]
        return sum(people) >= _MOST_SAY

    def knows_most(self, document: Doc) -> bool:
        """Check whether at least half of the words of an English document are known.

        Names are; all words are where a pipeline of the user's has no lexicon.
        """
        words = [token for token in document if token.is_alpha]
        known = (
            token.is_stop
            or not self._words.isdisjoint((token.lower_, token.lemma_))
            or name_of(token)
            for token in words
        )
        return not self._words or 2 * sum(map(bool, known)) >= len(words)

    def _pipeline(self, language: str) -> Language:
        if language not in self._pipelines:
            self._pipelines[language] = nlp = self._load(language)
            if language == ENGLISH:
                self._read_lexicon(nlp)
        return self._pipelines[language]

    def _load(self, language: str) -> Language:
        """Load ours, none of whose files is code or pickled, or one that is the user's to trust."""
        from spacy.util import load_config, load_model, load_model_from_config

        own = self._own.get(language)
        if own is None:
            folder = verified_folder(self._weights, PIPELINE)
            nlp = load_model_from_config(load_config(folder / "config.cfg"), exclude=_UNUSED)
            return nlp.from_disk(folder, exclude=_UNUSED)
        try:
            return load_model(_place(own))
        except (ImportError, OSError, ValueError) as error:  # ValueError: its settings are wrong.
            raise WeightsMissing(
                f"spaCy cannot load the pipeline {own}: install the package of that name, or name "
                f"its folder in `sentences` of the profile ({error})"
            ) from error

    def _read_lexicon(self, nlp: Language) -> None:
        """Note the words that a pipeline's rules of lemmas know, and those that they get wrong."""
        pipes = dict(nlp.pipeline)
        lookups = getattr(pipes.get("lemmatizer"), "lookups", None)
        tables = ("lemma_index", "lemma_exc", "lemma_rules")
        if lookups is None or not all(map(lookups.has_table, tables)):
            return
        index, irregular, rules = map(lookups.get_table, tables)
        verbs, nouns = set(index["verb"]), set(index["noun"])
        self._words = frozenset(verbs | nouns | {*index["adj"], *index["adv"]})
        # "riding" is of "ride", since of "rid" it were "ridding"; spaCy takes the shorter one.
        silent = [verb for verb in verbs if f"{verb}e" in verbs and _DOUBLES.fullmatch(verb)]
        forms = {f"{verb}{end}": f"{verb}e" for verb in silent for end in ("ing", "ed")}
        # "Took a look": without a subject the tagger takes a past form for the base form.
        forms |= {word: found[0] for word, found in irregular["verb"].items() if word not in verbs}
        # "scissors" have no singular.
        plurals = [
            word
            for word in nouns
            if word.endswith("s")
            and nouns.isdisjoint(
                word.removesuffix(old) + new for old, new in rules["noun"] if word.endswith(old)
            )
        ]
        self._lemmas = {("VERB", form): verb for form, verb in forms.items()}
        self._lemmas |= {("NOUN", word): word for word in {*plurals, *_PLURALS}}

    def _mended(self, doc: Doc) -> Doc:
        """Correct lemmas, and what is a name: a noun with a capital that no lexicon has.

        spaCy's names of people are often things ("Coin", "a napkin"), which would be taken for
        people wherever they are named later.
        """
        for token in doc if self._words else ():
            lemma = self._lemmas.get((token.pos_, token.lower_), token.lemma_)
            token.lemma_ = lemma
            known = lemma.lower() in self._words
            if token.pos_ == "NOUN" and token.is_title and not known:
                token.pos_ = "PROPN"
            after = doc[token.i + 1 : token.i + 2]
            alone = token.ent_iob_ == "B" and all(one.ent_iob_ != "I" for one in after)
            if token.pos_ != "PROPN" or (token.ent_type_ == "PERSON" and alone and known):
                token.ent_type_ = ""
        return doc


def has_pipeline(name: str) -> bool:
    """Check whether a pipeline of the user's is there: a folder or an installed package."""
    place = _place(name)
    return (place / "config.cfg").is_file() if isinstance(place, Path) else bool(find_spec(place))


def _place(name: str) -> Path | str:
    return Path(name).expanduser() if name.startswith(("/", ".", "~")) else name


def name_of(token: Token) -> str:
    """Return the known name or tag that a token stands for; "" if it is a word."""
    names: dict[int, str] = token.doc.user_data.get(_NAMES, {})
    return names.get(token.i, "")


def _document(nlp: Language, text: str, pattern: re.Pattern[str] | None) -> Doc:
    """Return a text's tokens; those of names have them by their number in ``user_data``."""
    text = text[:_LONGEST]
    if pattern is None:
        return nlp.make_doc(text)
    names: dict[int, str] = {}
    shift = 0
    for found in pattern.finditer(text):
        names[found.start() + shift] = found[0]
        shift += len(_STAND_IN) - len(found[0])
    doc = nlp.make_doc(pattern.sub(_STAND_IN, text))
    doc.user_data[_NAMES] = {token.i: names[token.idx] for token in doc if token.idx in names}
    return doc


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield texts in batches of so many texts and letters."""
    batch: list[str] = []
    letters = 0
    for text in texts:
        if batch and (len(batch) == _BATCH or letters + len(text) > _MOST_LETTERS):
            yield batch
            batch, letters = [], 0
        batch.append(text)
        letters += len(text)
    if batch:
        yield batch
