"""``python -m benchmarks.perception``: what is seen and heard, beside what people marked."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer
from pydantic_core import to_jsonable_python

from benchmarks.perception.metrics import COLLAR_MS, TOLERANCE_MS, Cuts, SpeakerErrors
from benchmarks.perception.report import PerceptionReport, evaluate_perception, total
from cli.commands import ErrorBoundary, Json, Profile
from cli.console import meter, say, say_json, say_table
from cli.reports import bar_lines
from domain.words import plain_line
from evals.report_formats import write
from models.profile import load_profile
from store.home import Home

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
    r"""Measure faces, voices, words, sounds and cuts against annotated clips in FOLDER.

    Absent clips are left out. The exit code is 1 if a bar is missed.

    \b
    Example:
      python -m benchmarks.perception media --out perception.json
    """
    home = Home.default()
    with meter() as bar:
        report = evaluate_perception(folder, load_profile(profile, home.config), home, bar)
    document = {**to_jsonable_python(report), "bars": to_jsonable_python(report.bars)}
    if out is not None:
        write(out, json_module.dumps(document, indent=2) + "\n")
    say_json(document) if json else _show(report)
    raise typer.Exit(int(not all(bar.met for bar in report.bars)))


def _show(report: PerceptionReport) -> None:
    def errors(of: SpeakerErrors, strict: SpeakerErrors | None) -> tuple[str, ...]:
        parts = (of.missed_ms, of.false_ms, of.confused_ms)
        shares = (f"{100 * part / max(1, of.speech_ms):.1f}" for part in parts)
        return f"{of.rate:.1f}", *shares, f"{strict.rate:.1f}" if strict else ""

    def cuts(of: Cuts | None) -> tuple[object, ...]:
        return (f"{100 * of.f1:.1f}", of.told, of.right) if of else ("", "", "")

    two = total(report.pairs_of_speakers)
    tables: list[tuple[str, tuple[str, ...], list[tuple[object, ...]]]] = [
        (
            "Faces: over all pairs of sightings, are two of one person taken for one?",
            (
                *("video", "engine", "F1 %", "precision %", "recall %", "people", "identities"),
                *("sightings", "of nobody known", "missed", "one twice on a frame"),
            ),
            [
                (
                    *(one.name, one.engine),
                    *(
                        f"{100 * x:.1f}"
                        for x in (one.pairs.f1, one.pairs.precision, one.pairs.recall)
                    ),
                    *(one.people, one.identities, one.sightings, one.strangers),
                    *(f"{one.missed} of {one.marked}", one.twice),
                )
                for one in report.faces
            ],
        ),
        (
            f"Speakers: error rate, overlap counted, {COLLAR_MS} ms around each border left out",
            (
                *("recording", "speakers", "voices", "error %", "missed %", "false %"),
                *("confused %", "error % without collar"),
            ),
            [
                *(
                    (v.name, v.speakers, v.voices, *errors(v.errors, v.strict))
                    for v in report.voices
                ),
                ("all with two speakers", "", "", *errors(two, None)),
                ("all", "", "", *errors(total(report.voices), None)),
            ]
            if report.voices
            else [],
        ),
        (
            "Voices and faces: of those who speak in view, who was joined to their own voice?",
            ("video", "speak in view", "joined", "to a wrong face"),
            [(j.name, len(j.speakers), len(j.right), j.wrong) for j in report.joins],
        ),
        (
            "Words: error rate, in lower case and without punctuation",
            ("recording", "words", "error %", "over the whole file %"),
            [
                (w.name, w.errors.words, f"{w.errors.rate:.1f}", f"{w.whole.rate:.1f}")
                for w in report.words
            ],
        ),
        (
            "Sounds: recordings of them, put into speech",
            ("track", "sounds", "recall %", "recognised", "precision %", "times real time"),
            [
                (
                    *(one.name, one.placed, f"{100 * one.recall:.1f}", one.told),
                    *(f"{100 * one.precision:.1f}", f"{one.speed:.0f}"),
                )
                for one in report.sounds
            ],
        ),
        (
            f"Cuts: found within {TOLERANCE_MS} ms, beside PySceneDetect's content detector",
            (
                *("video", "cuts", "F1 %", "found", "right"),
                *("PySceneDetect F1 %", "found", "right"),
            ),
            [(s.name, s.ours.true, *cuts(s.ours), *cuts(s.reference)) for s in report.shots],
        ),
    ]
    for title, heads, rows in tables:
        if rows:
            say(title)
            say_table(heads, rows)
            say()
    if any(shots.reference is None for shots in report.shots):
        say("PySceneDetect is not installed: pip install scenedetect --no-deps")
    if report.absent:
        say(f"not there, not judged: {plain_line(', '.join(report.absent))}")
    for line in bar_lines(report.bars):
        say(line)


app = typer.Typer(cls=ErrorBoundary, rich_markup_mode=None)
app.callback(invoke_without_command=True)(perception)

if __name__ == "__main__":
    app(prog_name="python -m benchmarks.perception")
