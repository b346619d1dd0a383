"""The example run and the example skills, shown where there are none in the library yet.

``python -m evals.example NAME`` records a run of the library of ``HOMER_HOME``, and with
``--skills`` what was learned from it. They are data apart from every library: nothing of them is
learned from, counted, searched or given to a question.
"""

from __future__ import annotations

import argparse
from functools import cache
from pathlib import Path

from domain.base import Frozen
from domain.evaluation import QuestionPart
from domain.skills import Skill
from evals.report import run_report
from evals.tables import RunReport
from skills.library import list_skills
from store.database import open_store
from store.home import Home

SETS = Path(__file__).parent / "sets"
RUN_FILE, SKILLS_FILE = SETS / "example_run.json", SETS / "example_skills.json"


class ExampleSkills(Frozen):
    """The skills that were learned from the ``answers`` judged answers of a run."""

    dataset: str
    profile: str
    answers: int
    skills: tuple[Skill, ...]


@cache
def example_run() -> RunReport:
    return RunReport.model_validate_json(RUN_FILE.read_text("utf-8"))


@cache
def example_skills() -> ExampleSkills:
    return ExampleSkills.model_validate_json(SKILLS_FILE.read_text("utf-8"))


def main() -> None:
    """Write an example from a run of the library, without links to its trajectories."""
    parser = argparse.ArgumentParser(description="Record a run as the example.")
    parser.add_argument("name", help="of a finished run")
    parser.add_argument("--skills", action="store_true", help="record what was learned from it")
    options = parser.parse_args()
    with open_store(Home.default()) as store:
        report = run_report(store, options.name)
        skills = tuple(entry.skill for entry in list_skills(store) if not entry.banned)
    rows, settings = report.questions, report.run.settings
    if options.skills:
        answers = sum(row.part is QuestionPart.LEARN and row.right is not None for row in rows)
        learned = ExampleSkills(
            dataset=settings.dataset, profile=settings.profile, answers=answers, skills=skills
        )
        SKILLS_FILE.write_text(learned.model_dump_json(indent=1) + "\n", "utf-8")
    else:
        questions = tuple(row.model_copy(update={"trajectory": ""}) for row in rows)
        example = report.model_copy(update={"questions": questions})
        RUN_FILE.write_text(example.model_dump_json(indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
