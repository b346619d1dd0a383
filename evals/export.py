"""Exports of a report: its rows as CSV, all of it as one HTML page that needs no network."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

from domain.errors import InputError
from domain.evaluation import AnswerUsage, Verdict
from evals.datasets import source
from evals.layout import ReportTable, headline, questions_table, tables
from evals.tables import AnsweredQuestion, Point, RunReport
from store.files import open_private

PAGE = Path(__file__).with_name("page.html")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters that a spreadsheet reads as a formula."""
WIDTH, HEIGHT, EDGE = 720, 300, 40
COLOURS = ("#00695c", "#b35c00")


def as_csv(rows: Sequence[AnsweredQuestion]) -> str:
    """Return one line per question and arm, with all that is recorded of it."""
    out = io.StringIO()
    # What was asked stands first, then what the answer took, then the verdict.
    names = sorted(
        AnsweredQuestion.model_fields,
        key=lambda name: (name in Verdict.model_fields, name in AnswerUsage.model_fields),
    )
    writer = csv.writer(out)
    writer.writerow(names)
    writer.writerows([_plain(getattr(row, name)) for name in names] for row in rows)
    return out.getvalue()


def _plain(value: object) -> str:
    """Format a value as a cell: several joined by bars, and no text as a formula."""
    if isinstance(value, tuple):
        value = " | ".join(map(str, value))
    if value is None:
        return ""
    if not isinstance(value, str):
        return str(value)
    return f"'{value}" if value.startswith(FORMULA) else value


def as_page(report: RunReport) -> str:
    """Return the whole page; all text is escaped."""
    settings, run = report.run.settings, report.run
    facts = (
        headline(report),
        f"data set {settings.dataset}, {settings.questions} questions",
        f"profile {settings.profile}, protocol {settings.protocol}",
        f"open answers judged by {settings.judge or 'nobody'}",
        f"begun {run.began_at:%Y-%m-%d %H:%M}, {run.state}",
        f"{report.cost_usd:.2f} US dollars",
    )
    return Template(PAGE.read_text(encoding="utf-8")).substitute(
        title=escape(f"Evaluation {run.name}"),
        facts=escape(" · ".join(facts)),
        remarks="".join(f'<p class="remark">{escape(remark)}</p>' for remark in report.remarks),
        tables="".join(map(_table, tables(report))),
        curve=_curve(report.curve),
        questions=_table(questions_table(report.questions)),
    )


def _table(table: ReportTable) -> str:
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in table.heads)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows)
    caption = f"<caption>{escape(table.title)}</caption>"
    return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(text: str) -> str:
    kind = ' class="n"' if text[:1].isdigit() or text[:1] in "+-" else ' dir="auto"'
    return f"<td{kind}>{escape(text)}</td>"


def _curve(points: Sequence[Point]) -> str:
    """Draw the share right so far over the answers, one line per arm, of the tested part."""
    arms = list(dict.fromkeys(point.arm for point in points))
    lines = [[p for p in points if p.arm == arm and p.part == "test" and p.so_far] for arm in arms]
    if not any(lines):
        return ""
    most = max(sum(p.answers for p in line) for line in lines)
    drawn = ""
    for number, arm in enumerate(arms):
        places, answered = list[str](), 0
        for point in lines[number]:
            answered += point.answers
            value = point.so_far.value if point.so_far else 0.0
            x = EDGE + (WIDTH - EDGE - 10) * answered / most
            places.append(f"{x:.1f},{10 + (HEIGHT - EDGE - 10) * (1 - value):.1f}")
        colour = COLOURS[number % len(COLOURS)]
        dots = "".join(
            '<circle cx="{}" cy="{}" r="4" fill="{}"/>'.format(*place.split(","), colour)
            for place in places
        )
        name = f'<text x="{EDGE + 10}" y="{30 + 18 * number}" fill="{colour}">{escape(arm)}</text>'
        path = f'points="{" ".join(places)}" fill="none" stroke="{colour}" stroke-width="2"'
        drawn += f"<polyline {path}/>{dots}{name}"
    axis = f'<path d="M{EDGE} 10V{HEIGHT - EDGE}H{WIDTH - 10}" fill="none" stroke="#555"/>'
    ends = (
        f'<text x="4" y="20">100 %</text><text x="4" y="{HEIGHT - EDGE}">0 %</text>'
        f'<text x="{WIDTH - 120}" y="{HEIGHT - 15}">{most} answers</text>'
    )
    return (
        f'<svg role="img" aria-label="Share right so far, over the answers" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" font-size="13">{axis}{ends}{drawn}</svg>'
    )


def write(path: Path, text: str) -> None:
    """Write an export, readable by its owner only.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        with open_private(path, errors="replace") as file:
            file.write(text)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


# The answers of a run in the form that the leaderboard of its data set reads.


@dataclass(frozen=True)
class Submission:
    """The written answers of an arm, of so many; ``wanted`` by the data set, None: unknown."""

    file: Path
    arm: str
    answers: int
    wanted: int | None


def write_submissions(folder: Path, report: RunReport) -> list[Submission]:
    """Write a file for each arm of a run that chose options.

    Raises:
        InputError: the data set has no leaderboard, nothing was chosen, or nothing can be written.
        NotFound: there is no such data set.
    """
    run, asked = report.run.name, source(report.run.settings.dataset)
    if asked.submission is None:
        raise InputError(f"{asked.title} has no leaderboard that Homer can write for")
    chosen: dict[str, dict[str, str]] = {}
    for row in report.questions:
        if row.option:
            chosen.setdefault(row.arm, {})[row.id] = row.option
    if not chosen:
        raise InputError(f"the run {run} has chosen no option yet")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror or error}") from error
    written = []
    names = set[str]()
    for arm, letters in chosen.items():
        name = unique = re.sub(r"[^a-z0-9.+]+", "-", arm.lower()).strip("-")
        number = 1
        while unique in names:
            number += 1
            unique = f"{name}-{number}"
        names.add(unique)
        file = folder / f"{run}-{unique}.json"
        write(file, json.dumps(asked.submission(letters), indent=1) + "\n")
        written.append(Submission(file, arm, len(letters), asked.published.questions))
    return written
