"""``homer eval perception``: what is seen and heard, beside what people marked."""

from __future__ import annotations

import json as json_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import say, say_json, say_table
from cli.eval_bars import code_of, report_json, show_bars
from cli.options import Json, Profile
from cli.progress import meter
from domain.errors import SetupError
from evals.export import write
from models.profile import load_profile
from store.home import Home
from views.words import plain_line

if TYPE_CHECKING:
    from benchmarks.perception.faces import FaceReport
    from benchmarks.perception.metrics import Cuts, SpeakerErrors
    from benchmarks.perception.report import PerceptionReport
    from benchmarks.perception.sounds import SoundReport

MEDIA = Path("../shared/media")

Folder = Annotated[
    Path, typer.Argument(metavar="[FOLDER]", help="Folder with the clips and their annotations.")
]
Out = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the whole report to a JSON file.")
]


def perception(
    folder: Folder = MEDIA, out: Out = None, profile: Profile = None, json: Json = False
) -> None:
    """Measure faces, voices, words, sounds and cuts against annotated clips in FOLDER.

    It needs a checkout of Homer: an installed package does not include this evaluation. Absent
    clips are left out. The exit code is 1 if a bar is missed.

    \b
    Example:
      homer eval perception media --out perception.json
    """
    _need_checkout()
    # The wheel leaves it out.
    from benchmarks.perception.report import evaluate_perception

    home = Home.default()
    with meter() as bar:
        report = evaluate_perception(folder, load_profile(profile, home.config), home, bar)
    document = report_json(report, report.bars)
    if out is not None:
        write(out, json_module.dumps(document, indent=2) + "\n")
    say_json(document) if json else _show(report)
    raise typer.Exit(code_of(report.bars))


def _need_checkout() -> None:
    """Raise where this evaluation is not there, as in an installed wheel.

    Raises:
        SetupError: It is not.
    """
    if find_spec("benchmarks") is None or find_spec("benchmarks.perception") is None:
        raise SetupError(
            "Perception is evaluated in a checkout of Homer only: this installation leaves it out. "
            "Clone the repository and run 'make eval-perception' there."
        )


def _show(report: PerceptionReport) -> None:
    for show in (_show_faces, _show_voices, _show_joins, _show_words, _show_sounds, _show_shots):
        show(report)
    if report.absent:
        say(f"not there, not judged: {plain_line(', '.join(report.absent))}")
    show_bars(report.bars)


def _show_faces(report: PerceptionReport) -> None:
    if report.faces:
        say("Faces: over all pairs of sightings, are two of one person taken for one?")
        heads = ("video", "engine", "F1 %", "precision %", "recall %", "people", "identities")
        more = ("sightings", "of nobody known", "missed", "one twice on a frame")
        say_table((*heads, *more), map(_face_row, report.faces))
        say()


def _face_row(report: FaceReport) -> tuple[object, ...]:
    pairs = report.pairs
    shares = (f"{100 * share:.1f}" for share in (pairs.f1, pairs.precision, pairs.recall))
    missed = f"{report.missed} of {report.marked}"
    return (
        *(report.name, report.engine, *shares, report.people, report.identities, report.sightings),
        *(report.strangers, missed, report.twice),
    )


def _show_voices(report: PerceptionReport) -> None:
    # The wheel leaves these out too.
    from benchmarks.perception.metrics import COLLAR_MS
    from benchmarks.perception.report import total

    if report.voices:
        say(f"Speakers: error rate, overlap counted, {COLLAR_MS} ms around each border left out")
        heads = ("recording", "speakers", "voices", "error %", "missed %", "false %", "confused %")
        rows = [(v.name, v.speakers, v.voices, *_errors(v.errors, v.strict)) for v in report.voices]
        two = total(report.pairs_of_speakers)
        rows.append(("all with two speakers", "", "", *_errors(two, None)))
        rows.append(("all", "", "", *_errors(total(report.voices), None)))
        say_table((*heads, "error % without collar"), rows)
        say()


def _errors(errors: SpeakerErrors, strict: SpeakerErrors | None) -> tuple[str, ...]:
    parts = (errors.missed_ms, errors.false_ms, errors.confused_ms)
    shares = (f"{100 * part / max(1, errors.speech_ms):.1f}" for part in parts)
    return f"{errors.rate:.1f}", *shares, f"{strict.rate:.1f}" if strict else ""


def _show_joins(report: PerceptionReport) -> None:
    if report.joins:
        say("Voices and faces: of those who speak in view, who was joined to their own voice?")
        heads = ("video", "speak in view", "joined", "to a wrong face")
        rows = ((j.name, len(j.speakers), len(j.right), j.wrong) for j in report.joins)
        say_table(heads, rows)
        say()


def _show_words(report: PerceptionReport) -> None:
    if report.words:
        say("Words: error rate, in lower case and without punctuation")
        rows = (
            (w.name, w.errors.words, f"{w.errors.rate:.1f}", f"{w.whole.rate:.1f}")
            for w in report.words
        )
        say_table(("recording", "words", "error %", "over the whole file %"), rows)
        say()


def _show_sounds(report: PerceptionReport) -> None:
    if report.sounds:
        say("Sounds: recordings of them, put into speech")
        heads = ("track", "sounds", "recall %", "recognised", "precision %", "times real time")
        say_table(heads, map(_sound_row, report.sounds))
        say()


def _sound_row(report: SoundReport) -> tuple[object, ...]:
    recall, precision = (f"{100 * share:.1f}" for share in (report.recall, report.precision))
    return report.name, report.placed, recall, report.told, precision, f"{report.speed:.0f}"


def _show_shots(report: PerceptionReport) -> None:
    # The wheel leaves it out.
    from benchmarks.perception.metrics import TOLERANCE_MS

    if report.shots:
        say(f"Cuts: found within {TOLERANCE_MS} ms, beside PySceneDetect's content detector")
        rows = ((s.name, s.ours.true, *_cuts(s.ours), *_cuts(s.reference)) for s in report.shots)
        heads = ("video", "cuts", "F1 %", "found", "right")
        say_table((*heads, "PySceneDetect F1 %", "found", "right"), rows)
        if any(shots.reference is None for shots in report.shots):
            say("PySceneDetect is not installed: pip install scenedetect --no-deps")
        say()


def _cuts(cuts: Cuts | None) -> tuple[object, ...]:
    return (f"{100 * cuts.f1:.1f}", cuts.told, cuts.right) if cuts else ("", "", "")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("perception")(perception)
