"""How much memory watching takes at its peak, stage by stage.

    python -m benchmarks.memory [FILM]

A film of 360p, the demo's packets over and over without encoding anew, is watched by a process of
its own for each stage: it decodes clip after clip and does the one stage on each. Last is
``homer ingest --direct`` with every stage on and a database of its own. A peak is the largest
resident set that was seen of the process, looked at every 20 ms, what Python and its packages take
included. Postgres is a process tree beside it and told apart.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.ingest import DEMO, repeated, with_sound
from benchmarks.lines import Line, Taken, costs
from domain.settings import WatchSettings
from models.profile import load_profile
from models.toolbox import Toolbox
from perception.decode import RawClip, read_clips
from perception.faces_and_voices import find_faces, find_turns, group_faces, group_voices
from perception.hearing import find_sounds
from perception.images import Blobs
from perception.keyframes import (
    Candidate,
    ChosenKeyframe,
    keyframe_candidates,
    pick_keyframes,
    read_screen,
)
from perception.perceive_clip import find_objects
from perception.source import probe
from store.embedded import EmbeddedPostgres
from store.home import Home

MINUTES, HEIGHT, CUT_S = 14.0, 360, 120.0
MOST_MB = 1500.0
LOOK_S = 0.02
LINES_A_CLIP = 40
LINE = "the harbour of Lisbon was rebuilt after a long winter of rain "

Stage = Callable[[RawClip, Toolbox, WatchSettings], object]


def lines() -> Iterator[Line]:
    """The peak of each stage beside the bar of all of them; only watching itself is judged."""
    with tempfile.TemporaryDirectory() as folder:
        recording = repeated(with_sound(DEMO, Path(folder) / "f.mkv", HEIGHT, CUT_S), 60 * MINUTES)
        yield from measured(recording, Path(folder))


def measured(recording: Path, folder: Path) -> Iterator[Line]:
    """Yield a line for each stage of watching ``film``, then for all together."""
    most = Taken((MOST_MB,), "MB")
    for stage in STAGES:
        peak = run_measured(
            [sys.executable, "-m", "benchmarks.memory", str(recording), "--stage", stage]
        ).peak_mb
        yield costs(f"peak of memory, {stage}", Taken((peak,), "MB"), most, "what all may take")
    used = ingest_measured(recording, folder)
    alone, beside = Taken((used.peak_mb,), "MB"), Taken((used.beside_mb,), "MB")
    yield costs("peak of memory, all", alone, most, "what all may take", 1.0)
    yield costs("peak of memory, Postgres", beside, most, "what all may take")


def ingest_measured(recording: Path, folder: Path) -> Used:
    """Watch a recording by ``homer ingest --direct`` into a database of its own, in ``folder``."""
    home = Home(folder / "home").make()
    weights = str(Home.default().weights)
    environment = os.environ | {"HOMER_HOME": str(home.root), "HOMER_WEIGHTS": weights}
    command = [sys.executable, "-m", "cli", "ingest", str(recording), "--direct"]
    try:
        return run_measured([*command, "--profile", "local"], environment)
    finally:
        EmbeddedPostgres(home).stop()


@dataclass(frozen=True)
class Used:
    """What a command took: seconds, and the largest resident set in MB of its process.

    ``cpu`` is of all threads of its process. ``beside_mb`` is of all processes that it started.
    """

    wall: float
    cpu: float
    peak_mb: float
    beside_mb: float


def run_measured(command: Sequence[str], environment: dict[str, str] | None = None) -> Used:
    """Run a command and return what it took.

    Raises:
        CalledProcessError: the command failed.
    """
    own = others = cpu = 0.0
    began = time.perf_counter()
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        known = psutil.Process(process.pid)
        while process.poll() is None:
            own = max(own, _resident(known))
            with suppress(psutil.Error):
                cpu = max(cpu, sum(known.cpu_times()[:2]))
                others = max(others, sum(map(_resident, known.children(recursive=True))))
            time.sleep(LOOK_S)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(command))
    return Used(time.perf_counter() - began, cpu, own, others)


def _resident(process: psutil.Process) -> float:
    with suppress(psutil.Error):
        return float(process.memory_info().rss) / 1e6
    return 0.0


def _decoded(_raw: RawClip, _tools: Toolbox, _settings: WatchSettings) -> object:
    return None


def _keyframes(
    raw: RawClip, settings: WatchSettings
) -> tuple[list[Candidate], list[ChosenKeyframe]]:
    found = keyframe_candidates(raw.frames, settings, raw.clip.span.end_ms)
    return found, pick_keyframes(raw.frames, found, settings, Blobs())


def _faces(raw: RawClip, tools: Toolbox, settings: WatchSettings) -> object:
    found, chosen = _keyframes(raw, settings)
    shots, always = [one.shot for one in found], [one.index for one in chosen]
    seen = find_faces(raw.frames, shots, always, tools.faces, settings)
    return group_faces(seen, tools.faces.same_person, raw.clip, settings, Blobs())


def _objects(raw: RawClip, tools: Toolbox, settings: WatchSettings) -> object:
    return find_objects(_keyframes(raw, settings)[1], tools.objects) if tools.objects else ()


def _screen(raw: RawClip, tools: Toolbox, settings: WatchSettings) -> object:
    return read_screen(_keyframes(raw, settings)[1], tools.screen)


def _voices(raw: RawClip, tools: Toolbox, settings: WatchSettings) -> object:
    spans = tools.activity.spans(raw.samples) if raw.samples.any() else []
    turns = find_turns(raw.samples, spans, tools.speaker, settings.audio_hz)
    return group_voices(turns, raw.samples, raw.clip, tools.speaker, settings)


def _speech(raw: RawClip, tools: Toolbox, _settings: WatchSettings) -> object:
    return tools.speech.transcribe(raw.samples)


def _sounds(raw: RawClip, tools: Toolbox, settings: WatchSettings) -> object:
    return find_sounds(raw.samples, tools.sounds, raw.clip, settings) if tools.sounds else ()


def _embedded(raw: RawClip, tools: Toolbox, _settings: WatchSettings) -> object:
    output = (LINE * (1 + n % 20) + f"{raw.clip.index} {n}" for n in range(LINES_A_CLIP))
    return tools.text.embed(list(output))


STAGES: dict[str, Stage] = {
    "decoding": _decoded,
    "faces": _faces,
    "objects": _objects,
    "voices": _voices,
    "speech": _speech,
    "sounds": _sounds,
    "screen text": _screen,
    "text vectors": _embedded,
}


def run_stage(stage: str, recording: Path) -> None:
    """Decode a film, and do one stage on each clip of it."""
    tools = Toolbox(load_profile("local"), Home.default().weights)
    settings = WatchSettings()
    for raw in read_clips(recording, probe(recording), settings):
        STAGES[stage](raw, tools, settings)


def main() -> None:
    """Measure a film, or do one stage of one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("film", type=Path, nargs="?")
    parser.add_argument("--stage", choices=STAGES)
    output = parser.parse_args()
    if output.stage:
        run_stage(output.stage, output.film)
        return
    with tempfile.TemporaryDirectory() as folder:
        found = measured(output.film, Path(folder)) if output.film else lines()
        for line in found:
            print(f"{line.what}: {line.ours.median:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
