"""How results of watching, of upkeep and of evaluations look in a terminal: see ``cli.render``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from cli.console import note, table
from domain.watching import sum_of
from domain.words import counted, plain_line, shortened

MEGABYTE = 1e6
FEW = 5
"""How many languages or absent videos are named."""


def _check(one: Any) -> Iterator[str]:
    state = "WARNING" if one.warning else "ok" if one.ok else "MISSING"
    yield f"{state:<8} {plain_line(one.what)}: {plain_line(one.found)}"
    if one.fix:
        yield f"fix {plain_line(one.what)}: {plain_line(one.fix)}"


def _strategy(one: Any) -> Iterator[str]:
    yield f"{one.name}{' (default)' if one.is_default else ''}: {one.title}"
    yield f"  paper: {one.paper}"
    yield f"  builds: {one.builds}"
    if one.built:
        yield f"  of this video: {plain_line(one.built.in_words)}"
    yield f"  needs: {one.needs}"
    yield f"  tools: {', '.join(one.tools)}"
    if one.parts:
        parts = "; ".join(f"{part} ({what})" for part, what in one.parts.items())
        yield f"  parts that {one.name}-without-PART leaves out: {parts}"


def _built(one: Any) -> Iterator[str]:
    built = f"{one.clips} clips of {plain_line(one.video.title)} built, of {one.total}"
    took = f"; {one.use}" if one.use else ""
    yield f"{one.strategy}: {built}, in {one.seconds:.0f} s{took}"


def _backup(one: Any) -> Iterator[str]:
    counts = (("videos", "video"), ("clips", "clip"), ("trajectories", "answer"))
    words = ", ".join(counted(one.rows(table), noun) for table, noun in counts)
    skills, images = counted(one.rows("skills"), "skill"), counted(one.blobs, "image")
    size = sum(part.size for part in one.parts()) / MEGABYTE
    yield f"complete: {words}, {skills}, {images}; {size:.1f} MB"


def _beside_backup(found: Iterable[Any]) -> Iterator[str]:
    for one in found:
        if one.missing:
            yield f"{counted(len(one.missing), 'image')} are gone or damaged, and not in it"
        if given := one.rights:
            yield f"{given} rights and members of groups are in it, restored with --rights only"


def _watched(one: Any) -> Iterator[str]:
    title, known = shortened(one.title), f"{counted(one.clips, 'clip')}, id {one.video}"
    if one.ended:
        yield f"{title}: {one.ended}, id {one.video}"
    elif one.failed:
        yield f"{title}: {one.failed} of {known} failed; the same command tries them again"
    elif one.video:
        used = f"; {one.used}" if one.used else ""
        yield f"{title}: {'' if one.fresh else 'already '}watched ({known}){used}"


def _imported(one: Any) -> Iterator[str]:
    title = shortened(one.title)
    if one.captions:
        each = ", ".join(f"{count} of {level}" for level, count in one.captions.items())
        yield f"{title}: a reference of {sum(one.captions.values())} captions ({each})"
    elif one.error:
        note(f"homer: {title}: {shortened(one.error)}")
    else:
        word = "imported" if one.fresh or one.failed else "already imported"
        more = f"{one.failed} failed" if one.answers is None else f"{one.answers} answers"
        yield f"{title}: {word} ({one.clips} clips, {more}, id {one.video})"


def _layout() -> Any:
    # It is slow to import, and of no use to other commands.
    from evals import report_formats

    return report_formats


def _report(found: Any) -> Iterator[str]:
    layout = _layout()
    yield from map(plain_line, found.remarks)
    for one in layout.tables(found):
        yield from (one.title, *table(one.heads, one.rows), "")
    yield f"{found.cost_usd:.2f} US dollars in all"
    yield layout.headline(found)


def bar_lines(bars: Iterable[Any]) -> Iterable[str]:
    rows = (
        (
            bar.name,
            f"{bar.value:.1f}",
            f"{'at most' if bar.most else 'at least'} {bar.limit:g}",
            "met" if bar.met else "MISSED",
        )
        for bar in bars
    )
    return table(("bar", "reached", "wanted", ""), rows)


def _figure(value: Any) -> str:
    """Return a share in percent with its interval, or a number; nothing of none."""
    is_number = isinstance(value, int | float)
    return f"{round(value, 2):g}" if is_number else _layout().percent(value)


def _measured(found: Any) -> Iterator[str]:
    yield f"{found.dataset}: run {found.run}"
    for title, rows in found.tables.items():
        names = dict.fromkeys(name for row in rows for name in row.figures)
        shares = {n for n in names for row in rows if hasattr(row.figures.get(n), "low")}
        heads = (f"{name} %" if name in shares else name for name in names)
        cells = ((r.name, r.questions, *(_figure(r.figures.get(n)) for n in names)) for r in rows)
        yield from (*table((title, "questions", *heads), cells), "")
    yield from (f"  {line}" for line in found.wrong)
    if found.absent:
        yield f"absent, not asked about: {plain_line(', '.join(found.absent))}"
    yield f"{counted(found.questions, 'question')} asked in {found.seconds:.0f} s"
    yield from (*found.notes, *bar_lines(found.bars), "")


def _comparison(found: Any) -> Iterator[str]:
    layout = _layout()
    changed = [layout.changes_table(found)] if found.changes else []
    effect = layout.effect_table("The same questions, answered twice", found.effect)
    for one in [*changed, effect]:
        yield from (one.title, *table(one.heads, one.rows), "")
    if found.alone:
        yield f"{found.alone} more were judged in one of them only"


def _calibration(fitted: Any) -> Iterator[str]:
    for name, curve in (("with options", fitted.options), ("open", fitted.open)):
        points = zip(curve.raw, curve.right, strict=True)
        if rows := [(f"{raw:.2f}", f"{100 * right:.1f}") for raw, right in points]:
            yield from (f"Questions {name}", *table(("raw confidence", "right %"), rows), "")


def _census(found: Any) -> Iterator[str]:
    named = ", ".join(shortened(name, 60) for name in found.missing[:FEW])
    more = ", ..." if len(found.missing) > FEW else ""
    gone = f" ({named}{more})" if found.missing else ""
    yield f"videos: {found.videos}, not here: {len(found.missing)}{gone}"
    each = found.by_video.values()
    yield f"questions: {found.questions}, {min(each)} to {max(each)} a video"
    as_of, known = (
        f"{count} ({100 * count / found.questions:.1f} %)"
        for count in (found.as_of, found.answered)
    )
    yield f"asked as of a moment: {as_of}"
    yield f"with a known answer: {known}, with its time: {found.timed}"
    if found.types:
        yield from ("", *table(("type", "questions"), found.types.items()))
    yield ""
    yield from (f"unlike what was published: {plain_line(line)}" for line in found.unlike)
    if found.whole:
        yield "whole: the counts are the published ones"


TABLES: dict[str, Mapping[str, Callable[[Any], object]]] = {
    "ModelOnDisk": {
        "model": lambda one: one.model,
        "for": lambda one: one.need,
        "state": lambda one: one.state,
        "MB": lambda one: f"{one.bytes / MEGABYTE:.0f}",
        "languages": lambda one: (
            f"{len(one.languages)} languages"
            if len(one.languages) > FEW
            else ", ".join(one.languages)
        ),
        "licence": lambda one: one.licence,
    },
    "EvaluationRun": {
        "run": lambda one: one.name,
        "data set": lambda one: one.settings.dataset,
        "profile": lambda one: one.settings.profile,
        "protocol": lambda one: one.settings.protocol,
        "state": lambda one: one.state,
        "judged": lambda one: one.judged,
        "of": lambda one: one.total,
        "begun": lambda one: f"{one.began_at.astimezone():%Y-%m-%d %H:%M}",
    },
    "DatasetSource": {
        "name": lambda one: one.name,
        "videos": lambda one: one.published.videos,
        "questions": lambda one: one.published.questions,
        "data set": lambda one: one.title,
        "licence": lambda one: one.licence,
    },
    "Measure": {
        "data set": lambda one: one.dataset,
        "measure": lambda one: one.measure,
        "questions": lambda one: one.ours.of,
        "Homer %": lambda one: _figure(one.ours),
        "baseline %": lambda one: _figure(one.plain),
        "points above": lambda one: "" if one.above is None else f"{100 * one.above:+.1f}",
    },
    "ScaleAgreement": {
        "strategy": lambda one: one.strategy,
        "scale": lambda one: one.scale,
        "captions": lambda one: one.captions,
        "entities: precision %": lambda one: f"{one.entities.precision:.1f}",
        "entities: recall %": lambda one: f"{one.entities.recall:.1f}",
        "entities: F1 %": lambda one: f"{one.entities.f1:.1f}",
        "triples: precision %": lambda one: f"{one.triples.precision:.1f}",
        "triples: recall %": lambda one: f"{one.triples.recall:.1f}",
        "triples: F1 %": lambda one: f"{one.triples.f1:.1f}",
    },
}
SHOWN: dict[str, Callable[[Any], Iterable[str]]] = {
    "Watched": _watched,
    "IngestEstimate": lambda one: [] if one.error else [plain_line(str(one))],
    "Imported": _imported,
    "Check": _check,
    "StrategyLine": _strategy,
    "Built": _built,
    "Manifest": _backup,
    "ReembedPlan": lambda plan: [str(plan)],
    "TrainingManifest": lambda made: [
        f"{made.trajectories} trajectories, {made.right} of them right; {made.prompts} prompts"
    ],
    "RunReport": _report,
    "RunOutcome": _report,
    "Measured": _measured,
    "Comparison": _comparison,
    "Calibration": _calibration,
    "Census": _census,
}
NOTES: dict[str, Callable[[Any], Iterable[str]]] = {
    "IngestEstimate": lambda found: [plain_line(str(sum_of(found)))] if len(found) > 1 else [],
    "RunOutcome": lambda done: [
        f"'homer eval report {done[0].run.name}' shows it again, and writes CSV and HTML"
    ],
    "Imported": lambda made: [
        f"{sum(not one.error for one in made)} of {len(made)} videos are in memory"
        if len(made) > 1
        else "",
        *(
            f"{one.left} answers stay behind: they cite by numbers that are taken here, or videos"
            for one in made
            if one.left
        ),
    ],
    "Built": lambda built: [
        *(f"{one.strategy}: {one.remark}" for one in built if one.remark),
        "ask with:  homer ask QUESTION --strategy NAME",
    ],
    "Calibration": lambda _: ["answers of the profile use it from now on"],
    "DatasetSource": lambda listed: [
        f"{', '.join(one.name for one in listed if one.where == where)}: {where}"
        for where in dict.fromkeys(one.where for one in listed)
    ],
    "Manifest": _beside_backup,
    "TrainingManifest": lambda made: [
        f"{made[0].open_questions} are open questions, which code cannot judge: no prompts"
        if made[0].open_questions
        else "",
        "it is complete; docs/training.md says how to train with it",
    ],
}
