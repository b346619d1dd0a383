"""Whether a copy is whole: its counts beside the published ones, and what the command tells."""

from __future__ import annotations

import json
import re
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from evals.datasets import read, source, sources
from evals.datasets.registry import Census, census
from evals.datasets.streams import MODES
from tests.support.datasets import (
    EGOLIFE,
    EGOMEM,
    EGOSCHEMA,
    EXAMPLES,
    HIPPO,
    LIFELONG,
    LONGVIDEO,
    LVBENCH,
    OVO,
    PARQUET,
    ROBOT_QA,
    STREAMING_DUE,
    STREAMING_REAL,
    WEB,
    Files,
    lay,
    mme,
    robot,
)
from tests.support.full_suite import sample

DOCS = Path(__file__).parents[3] / "docs" / "datasets.md"
README = Path(__file__).parents[3] / "README.md"


def homer(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["eval", "data", *arguments])


def counted(name: str, folder: Path) -> Census:
    return census(read(name, folder), source(name).published)


def spread(questions: int, videos: int) -> list[int]:
    """How many questions each video has, as evenly as can be."""
    each, more = divmod(questions, videos)
    return [each + (n < more) for n in range(videos)]


def _m3(part: dict[str, Any], questions: int, videos: int) -> Files:
    qa = part["qa_list"][0]
    whole = {
        f"v{n}": {**part, "qa_list": [{**qa, "question_id": f"v{n}_Q{q}"} for q in range(size)]}
        for n, size in enumerate(spread(questions, videos))
    }
    return {"robot.json" if "video_url" not in part else "web.json": whole}


def _video_mme() -> Files:
    types = {k: v for k, v in source("video-mme").published.types.items() if k[0].isupper()}
    kinds = [kind for kind, count in types.items() for _ in range(count)]
    rows = [
        mme(f"{n // 3:03}", ("short", "medium", "long")[n // 900])
        | {"question_id": f"{n}", "task_type": kind}
        for n, kind in enumerate(kinds)
    ]
    return {PARQUET: rows}


def _streaming() -> Files:
    files = {}
    for table, videos in (
        ("Real-Time Visual Understanding", 500),
        ("Omni-Source Understanding", 200),
        ("Contextual Understanding", 100),
        ("Sequential Question Answering", 50),
        ("Proactive Output", 50),
    ):
        row = STREAMING_DUE if table == "Proactive Output" else STREAMING_REAL
        ids = [f"{table}_sample_{n // 5}_{n % 5}" for n in range(5 * videos)]
        name = table.replace(" ", "_").replace("-", "_")
        files[f"{name}.csv"] = [{**row, "question_id": one} for one in ids]
    return files


def _egolife() -> Files:
    types = source("egolifeqa").published.types
    kinds = [kind for kind, count in types.items() for _ in range(count)]
    rows = [{**EGOLIFE, "ID": str(n), "type": kind} for n, kind in enumerate(kinds)]
    return {"EgoLifeQA_A1_JAKE.json": rows}


def _hippo() -> Files:
    kinds = ("audio_visual", "audio", "visual", "summary")
    rows = [{**HIPPO, "video_id": f"v{n % 25}", "category": kinds[n // 250]} for n in range(1000)]
    return {"questions.jsonl": rows}


def _lvbench() -> Files:
    qa = LVBENCH[0]["qa"][0]
    uids = iter(range(1549))
    sizes = enumerate(spread(1549, 103))
    return {
        "video_info.meta.jsonl": [
            {"key": f"k{n}", "qa": [{**qa, "uid": next(uids)} for _ in range(size)]}
            for n, size in sizes
        ]
    }


def _egoschema() -> Files:
    row = EGOSCHEMA["questions.json"][0]
    uids = [f"uid-{n}" for n in range(5031)]
    return {
        "questions.json": [{**row, "q_uid": uid} for uid in uids],
        "subset_answers.json": dict.fromkeys(uids[:500], 2),
    }


def _ovo() -> Files:
    wanted = source("ovo-bench").published.types
    videos = (f"v{n % 644}.mp4" for n in count())
    choices = [task for task, mode in MODES.items() if mode != "forward"]
    rows: list[dict[str, Any]] = [
        {**OVO[0], "task": task, "video": next(videos)}
        for task in choices
        for _ in range(wanted[task])
    ]
    for row in OVO[1:]:
        moments = row["test_info"][:1] * wanted[row["task"]]
        rows.append({**row, "video": next(videos), "test_info": moments})
    return {"ovo_bench_new.json": [{**row, "id": n} for n, row in enumerate(rows)]}


def _longvideo() -> Files:
    groups = {"up to 15 s": 15, "up to 60 s": 60, "up to 600 s": 600, "up to 3600 s": 3600}
    lengths = [
        groups[reported]
        for reported, size in source("longvideobench").published.types.items()
        for _ in range(size)
    ]
    rows = [{**LONGVIDEO, "id": f"v_{n}", "duration_group": g} for n, g in enumerate(lengths)]
    secret = {key: value for key, value in LONGVIDEO.items() if key != "correct_choice"}
    test = [{**secret, "id": f"t_{n}"} for n in range(5341)]
    return {"lvb_val.json": rows, "lvb_test_wo_gt.json": test}


def _lifelong() -> Files:
    sizes = {"month/train": 266, "month/val": 623, "day/test": 200, "week/test": 200}
    return {
        f"{name}.json": [{**LIFELONG, "index": n} for n in range(size)]
        for name, size in sizes.items()
    }


def _egomem() -> Files:
    types = source("egomemreason").published.types
    kinds = [kind for kind, count in types.items() for _ in range(count)]
    rows = [{**EGOMEM, "example_id": n, "query_type": k} for n, k in enumerate(kinds, 1)]
    return {"annotations_public.jsonl": rows}


WHOLE = {
    "m3-robot": _m3(robot([ROBOT_QA]), 1276, 100),
    "m3-web": _m3(WEB["abc-_123XYZ"], 3214, 920),
    "video-mme": _video_mme(),
    "video-mme-short": _video_mme(),
    "video-mme-medium": _video_mme(),
    "video-mme-long": _video_mme(),
    "streamingbench": _streaming(),
    "egolifeqa": _egolife(),
    "egomemreason": _egomem(),
    "hippovlog": _hippo(),
    "lvbench": _lvbench(),
    "egoschema": _egoschema(),
    "egoschema-subset": _egoschema(),
    "ovo-bench": _ovo(),
    "longvideobench": _longvideo(),
    "longvideobench-test": _longvideo(),
    "mm-lifelong": _lifelong(),
}


@pytest.mark.parametrize("name", sample(list(WHOLE)[::4], WHOLE))
def test_a_copy_of_the_published_size_is_whole(tmp_path: Path, name: str) -> None:
    found = counted(name, lay(tmp_path, WHOLE[name]))
    assert found.unlike == ()
    assert found.whole is True
    assert found.questions == source(name).published.questions == sum(found.by_video.values())


def test_every_published_set_was_tried_at_its_size() -> None:
    # NExT-QA is read from a sample of it; the user's own clips have no published size.
    other = {"own", "nextqa"}
    assert sorted(WHOLE) == sorted(one.name for one in sources() if one.name not in other)


@pytest.mark.parametrize(
    ("name", "answered"),
    [
        ("longvideobench", 1337),
        ("longvideobench-test", 0),
        ("egoschema", 500),
        ("egoschema-subset", 500),
        ("lvbench", 1549),
        ("ovo-bench", 3035),
        ("egomemreason", 0),
    ],
)
def test_answers_that_authors_store_are_unknown(tmp_path: Path, name: str, answered: int) -> None:
    assert counted(name, lay(tmp_path, WHOLE[name])).answered == answered


@pytest.mark.parametrize(
    ("name", "as_of"),
    [("ovo-bench", 3035), ("streamingbench", 4500), ("egolifeqa", 500), ("egomemreason", 500)],
)
def test_online_questions_have_their_time(tmp_path: Path, name: str, as_of: int) -> None:
    assert counted(name, lay(tmp_path, WHOLE[name])).as_of == as_of


def test_a_copy_that_lacks_something_says_what(tmp_path: Path) -> None:
    found = counted("ovo-bench", lay(tmp_path, EXAMPLES["ovo-bench"]))
    assert found.whole is False
    assert found.unlike[:3] == (
        "videos: 4, published 644",
        "questions: 7, published 3035",
        "type EPM: 1, published 297",
    )
    assert "type HLD: 0, published 186" in found.unlike
    assert found.types == {"forward": 6, "REC": 2, "SSR": 2, "CRR": 2, "backward": 1, "EPM": 1}


def test_videos_known_by_captions_are_here(tmp_path: Path) -> None:
    folder = lay(tmp_path, EXAMPLES["egolifeqa"])
    assert counted("egolifeqa", folder).missing == ("A1_JAKE",)
    lay(folder, {"captions.jsonl.gz": None})
    assert counted("egolifeqa", folder).missing == ()


def test_the_command_counts_a_copy(tmp_path: Path) -> None:
    lay(tmp_path, {"robot.json": {"hall\n01": robot([ROBOT_QA, ROBOT_QA])}})
    done = homer("m3-robot", str(tmp_path))
    assert done.exit_code == 1
    assert "videos: 1, not here: 1 (hall 01)" in done.output
    assert "questions: 2, 2 to 2 a video" in done.output
    assert "asked as of a moment: 2 (100.0 %)" in done.output
    assert re.search(r"Human Understanding +2\n", done.output)
    assert "unlike what was published: questions: 2, published 1276" in done.output


def test_the_command_says_when_a_copy_is_whole(tmp_path: Path) -> None:
    folder = lay(tmp_path, WHOLE["m3-robot"])
    done = homer("m3-robot", str(folder))
    assert (done.exit_code, "whole: the counts are the published ones" in done.output) == (0, True)
    reported = json.loads(homer("m3-robot", str(folder), "--json").output)
    assert (reported["whole"], reported["videos"], reported["questions"]) == (True, 100, 1276)
    assert len(reported["missing"]) == len(reported["by_video"]) == 100


def test_the_command_lists_what_there_is() -> None:
    done = homer()
    assert done.exit_code == 0
    for one in sources():
        assert one.where in done.output
        assert one.licence in done.output
    reported = json.loads(homer("--json").output)
    assert [one["name"] for one in reported] == [one.name for one in sources()]
    assert reported[1]["published"] == {"videos": 100, "questions": 1276, "types": {}}
    told = homer("lvbench").output
    assert source("lvbench").where in told
    assert "m3-robot" not in told


def test_the_documents_name_every_data_set_with_its_counts() -> None:
    lines = DOCS.read_text().splitlines()
    for one in sources():
        (row,) = [line for line in lines if line.startswith(f"| `{one.name}` ")]
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[1:3] == [one.title, one.licence]
        reported = (one.published.videos, one.published.questions)
        assert cells[3:5] == ["" if count is None else str(count) for count in reported]
    assert "(docs/datasets.md)" in README.read_text()
