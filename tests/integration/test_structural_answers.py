"""What people ask first, asked of the machine over a tiny interview, and every run replayed."""

from __future__ import annotations

import pytest

from domain.asking import Answer, Question
from domain.trajectory import Bound, EvidenceRetrieved, ForkEdit, Planned
from graphs.ask_result import AskResult
from graphs.replay import replay
from library.answers import answer_lines
from retrieval import retrievers
from store.database import Store
from store.queries.trajectories import events_of
from tests.support.asking import Reads, StructureByWords, WordToolbox
from tests.support.remembered import Said, name, see, watch
from tests.support.runs import ask, fork

V = "abcdefabcdefabcd"
OTHER = "b" * 16


def there(tag: str, at_s: float) -> Said:
    return Said(f"{tag} is on screen.", at_s, source="seen", who=(tag,))


TALK = (
    (
        Said("The Garden Hour", 0, source="read"),
        there("<face_1>", 0),
        Said("Welcome to our program about gardens", 2, speaker="<voice_1>"),
        there("<face_1>", 4),
        there("<face_2>", 8),
        Said("My guest today grows tulips", 10, speaker="<voice_1>"),
        Said("Seen: 2 people, a chair.", 12, source="objects"),
    ),
    (
        there("<face_2>", 0),
        there("<face_2>", 4),
        Said("Tulips need little water", 2, speaker="<voice_2>"),
        Said("Roses are a different matter altogether", 8, speaker="<voice_2>"),
        Said("I planted forty roses last autumn", 14, speaker="<voice_2>"),
    ),
    (
        there("<face_1>", 0),
        Said("And what about the tulips in winter", 3, speaker="<voice_1>"),
        Said("They sleep under the snow", 8, speaker="<voice_2>"),
        Said("Thank you and good night", 20, speaker="<voice_1>"),
        Said("A film by the garden club", 26, source="read"),
    ),
)


PARTY = (
    (
        Said("Welcome to our program about gardens", 2, speaker="<voice_1>"),
        Said("Heard: laughter, people laughing.", 6, source="sound"),
        Said("My guest today grows tulips", 10, speaker="<voice_2>"),
        Said("Heard: music.", 14, source="sound"),
    ),
)


MILL = (Said("The old mill grinds wheat for the whole village.", 2, speaker="<voice_1>"),)
STREET = (
    (
        there("<face_1>", 0),
        Said("Seen: a person, 4 cars, a chair.", 2, source="objects"),
        Said("Today I talk about the town", 4, speaker="<voice_1>"),
    ),
    (
        there("<face_1>", 0),
        Said("Seen: 2 people, a cow.", 6, source="objects"),
        Said("It was quiet here", 9, speaker="<voice_1>"),
    ),
)


@pytest.fixture(autouse=True)
def structure_by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrievers, "StructureQuestions", StructureByWords)


@pytest.fixture
def interview(store: Store) -> Store:
    watch(store, V, TALK)
    name(store, V, 1, "Ann", "<face_1>", "<voice_1>")
    name(store, V, 2, "Bob", "<face_2>", "<voice_2>")
    return store


def answered(store: Store, text: str, *options: str, as_of_ms: int | None = None) -> AskResult:
    """Asked of the whole machine; the run must replay byte for byte."""
    question = Question(text=text, videos=(V,), options=options, as_of_ms=as_of_ms)
    made = ask(store, WordToolbox(), question)
    assert replay(store, made.trajectory_id).divergence is None
    return made


def searches(store: Store, made: AskResult) -> list[EvidenceRetrieved]:
    with store.begin() as session:
        return [
            e for e in events_of(session, made.trajectory_id) if isinstance(e, EvidenceRetrieved)
        ]


def starts(answer: Answer) -> list[float]:
    return [c.span.start_ms / 1000 for c in answer.citations]


def test_a_crowd_is_counted_by_the_faces_on_one_picture_and_not_by_lines(store: Store) -> None:
    watch(store, V, (tuple(there(f"<face_{n}>", 2) for n in range(1, 8)),))
    for n in range(1, 8):
        name(store, V, n, f"Guest {n}", f"<face_{n}>")
        see(store, V, f"<face_{n}>", 2, 2)
    answer = answered(store, "How many people are there?").answer
    assert answer.text.startswith("7 people are seen: ")


def test_who_is_in_it_names_everybody_with_times(interview: Store) -> None:
    answer = answered(interview, "Who is in it?").answer
    assert answer.text.startswith("2 people are seen: ")
    assert "Ann (seen 00:00-00:06, 01:00-01:02, heard 00:02-00:04, " in answer.text
    assert "Bob (seen 00:08-00:10, 00:30-00:36, heard" in answer.text
    assert answer.citations


def test_who_speaks_and_when(interview: Store) -> None:
    answer = answered(interview, "Who speaks, and when?").answer
    assert answer.text.startswith("2 voices are heard: Ann (heard 00:02-00:04, 00:10-00:12")
    one = answered(interview, "When does Bob speak?").answer
    assert one.text == "Bob speaks at 00:32-00:34, 00:38-00:40, 00:44-00:46, 01:08-01:10."
    assert set(starts(one)) <= {32, 38, 44, 68}


def test_how_many_people_is_counted_and_compared_with_options(interview: Store) -> None:
    open_one = answered(interview, "How many people are in the video?").answer
    assert open_one.text.startswith("2 people are seen")
    chosen = answered(interview, "How many people are there?", "Five", "Two", "One").answer
    assert (chosen.option, chosen.text) == ("B", "Two")
    heard = answered(interview, "How many people speak?").answer
    assert heard.text.startswith("2 voices are heard")
    assert "seen" not in heard.text


def test_only_what_was_seen_by_then_is_counted(interview: Store) -> None:
    early = answered(interview, "Who speaks?", as_of_ms=30_000).answer
    assert early.text == "1 voice is heard: Ann (heard 00:02-00:04, 00:10-00:12)."


def test_how_it_begins_and_ends(interview: Store) -> None:
    begins = answered(interview, "How does it begin?").answer
    assert begins.text.startswith("It begins with: [00:00-00:02] On screen: The Garden Hour")
    assert "Welcome to our program" in begins.text
    assert starts(begins)[0] == 0
    ends = answered(interview, "What happens at the end?").answer
    assert "Thank you and good night" in ends.text
    assert starts(ends)[0] == 86


def test_first_and_last_are_by_the_words(interview: Store) -> None:
    first = answered(interview, "When are tulips first mentioned?").answer
    assert (first.text[:15], starts(first)) == ("First at 00:10:", [10])
    assert starts(answered(interview, "When are tulips last mentioned?").answer) == [63]
    assert answered(interview, "When are submarines first mentioned?").answer.not_in_memory


def test_words_that_run_over_two_lines_are_one_mention(store: Store) -> None:
    talk = (
        Said("A climbing plant is not what we mean", 2, speaker="<voice_1>"),
        Said("We are proud of the climbing", 10, speaker="<voice_1>"),
        Said("rose that my mother planted", 13, speaker="<voice_1>"),
    )
    watch(store, V, (talk,))
    assert starts(answered(store, "When is the climbing rose first mentioned?").answer) == [10]


def test_person_is_seen_first_by_the_face_and_mentioned_first_by_the_name(interview: Store) -> None:
    assert starts(answered(interview, "When does Bob first appear?").answer) == [8]
    watch(interview, V, ((Said("Thank you, Bob", 4, speaker="<voice_1>"),),), first=3)
    assert starts(answered(interview, "When is Bob first mentioned?").answer) == [94]


def test_what_comes_after_and_before(interview: Store) -> None:
    after = answered(interview, "What comes right after the tulips in winter?").answer
    assert "They sleep under the snow" in after.text
    assert starts(after)[0] == 68
    before = answered(interview, "What is said before roses are mentioned?").answer
    assert "Tulips need little water" in before.text


def test_what_it_is_about_and_its_outline_are_told_by_chapters(interview: Store) -> None:
    outline = answered(interview, "Give me an outline").answer
    assert outline.text.startswith("00:00 ")
    assert outline.citations
    watch(interview, OTHER, (MILL,))
    about = ask(interview, WordToolbox(), Question(text="What is it about?", videos=(OTHER,)))
    assert about.answer.text.endswith(
        "[00:02-00:04] The old mill grinds wheat for the whole village."
    )


@pytest.mark.parametrize("text", ["What is it about?", "Give me an outline"])
def test_a_reader_words_chapters_once_and_for_replays(interview: Store, text: str) -> None:
    tools = Reads({"title": "A visit to a garden", "summary": "Somebody plants roses. And cut"})
    made = ask(interview, tools, Question(text=text, videos=(V,)))
    told = "A visit to a garden. [00:00-01:28] Somebody plants roses."
    assert made.answer.text == (told if "about" in text else "00:00 A visit to a garden.")
    (asked,) = tools.model.seen
    assert "Tulips need little water" in str(asked[-1].content)
    again = replay(interview, made.trajectory_id)
    assert (again.divergence, again.calls) == (None, 1)


@pytest.mark.parametrize(
    "reply",
    [
        RuntimeError("gone"),
        "no JSON",
        {"title": " ", "summary": "Roses are planted."},
        {"title": "Roses", "summary": "He planted 70 roses."},
    ],
)
def test_a_chapter_that_the_reader_cannot_word_keeps_its_own(store: Store, reply: object) -> None:
    watch(store, V, (MILL,))
    question = Question(text="What is it about?", videos=(V,))
    made = ask(store, Reads(reply), question)
    assert made.answer.text == ask(store, WordToolbox(), question).answer.text
    assert replay(store, made.trajectory_id).divergence is None


def test_each_of_two_videos_is_answered_under_its_title(interview: Store) -> None:
    watch(interview, OTHER, PARTY)
    question = Question(text="How does it begin?", videos=(V, OTHER))
    made = ask(interview, WordToolbox(), question)
    assert replay(interview, made.trajectory_id).divergence is None
    first, second = answer_lines(made.answer, question)
    assert first.startswith(f"{V}: It begins with: [0:00-0:02] On screen: The Garden Hour")
    assert second.startswith(f"{OTHER}: It begins with: [0:02-0:04]")
    assert {citation.video for citation in made.answer.citations} == {V, OTHER}
    mentioned = ask(
        interview,
        WordToolbox(),
        Question(text="When is winter first mentioned?", videos=(V, OTHER)),
    )
    assert mentioned.answer.text.splitlines()[1] == f"{OTHER}: nothing close was found."


def test_all_of_it_is_on_record_and_rests_on_the_ledger(interview: Store) -> None:
    made = answered(interview, "Who speaks?")
    with interview.begin() as session:
        output = events_of(session, made.trajectory_id)
    (plan,) = (e for e in output if isinstance(e, Planned))
    assert [task.text for task in plan.subtasks] == ["Who speaks?"]
    (search,) = (e for e in output if isinstance(e, EvidenceRetrieved))
    assert search.quotes[0].kind == "structure"
    held = {ref for e in output if isinstance(e, Bound) for ref in e.refs}
    assert held.issuperset(c.ref for c in made.answer.citations)


def test_a_fork_that_takes_a_voice_from_the_evidence_changes_the_answer(interview: Store) -> None:
    made = answered(interview, "Who speaks?")
    (search,) = searches(interview, made)
    edit = ForkEdit(evidence=tuple(e for e in search.evidence if "Bob" not in e.text))
    assert "Bob" not in fork(interview, WordToolbox(), made.trajectory_id, 1, edit).answer.text


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("When is music heard?", "Heard: music."),
        ("When is laughter first heard?", "Heard: laughter, people laughing."),
    ],
)
def test_sound_is_no_voice_and_needs_no_description(store: Store, question: str, line: str) -> None:
    watch(store, V, PARTY)
    name(store, V, 1, "Ann", "<voice_1>")
    name(store, V, 2, "Bob", "<voice_2>")
    answer = answered(store, question).answer
    assert not answer.not_in_memory
    assert line in [cited.text for cited in answer.citations]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Which animals can be seen?", "a cow [00:36-00:38]"),
        ("What kind of vehicles stand behind the host?", "4 cars [00:02-00:04]"),
    ],
)
def test_things_of_a_kind_are_those_recognised(store: Store, question: str, text: str) -> None:
    watch(store, V, STREET)
    name(store, V, 1, "Omar", "<face_1>", "<voice_1>")
    answer = answered(store, question).answer
    assert (answer.text, len(answer.citations)) == (f"Recognised on the images: {text}.", 1)
