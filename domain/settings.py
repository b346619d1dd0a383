"""All settings with the paper's numbers as defaults, shared by every profile.

Section numbers are those of the HOMER paper; each default is asserted in tests.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, PositiveInt, model_validator

from domain.alerts import AlertSettings
from domain.base import Frozen
from domain.evaluation_options import AblationStage
from domain.media import StreamSettings

Subtitles = Literal["use", "ignore"]
"""Whether a video's own subtitles and chapters become memories."""


HOUR_MS = 3_600_000


class WatchSettings(Frozen, allow_inf_nan=False):
    """Section 3.1: how a video is cut, sampled and recognised."""

    clip_ms: PositiveInt = 30_000
    # By time: the authors' code takes every fifth frame, whatever the frame rate.
    sample_fps: float = Field(default=5.0, gt=0)
    audio_hz: PositiveInt = 16_000
    # At 0.3 recall is 4 points higher and precision 8 lower, at 0.5 recall 4 lower and precision 2
    # higher (docs/perception.md).
    sound_score: float = Field(
        default=0.4, gt=0, le=1, description="from which a sound is taken to be heard"
    )
    # Two windows of the model: with single ones four in ten lines are wrong.
    sound_ms: PositiveInt = Field(
        default=900, description="a kind of sound that is heard for less is not remembered"
    )
    sound_pause_ms: PositiveInt = Field(
        default=3_000, description="a sound that goes on after a pause so long is one sound"
    )
    shot_threshold: float = Field(default=30.0, gt=0, description="mean grey difference, eq. 1")
    entropy_weight: float = Field(default=0.3, ge=0, description="eq. 2")
    hue_bins: PositiveInt = 32
    # The paper's n. Fewer are kept where no frame is so far from all chosen ones.
    keyframes: PositiveInt = 3
    keyframe_gap_ms: PositiveInt = 2_000
    jpeg_quality: int = Field(default=90, ge=1, le=100)
    frame_height: PositiveInt = Field(default=720, description="sampled frames are shrunk to this")
    # Section 3.1; the quality is the norm of the embedding before it is normalised.
    face_score: float = Field(default=0.85, ge=0, le=1)
    face_quality: float = Field(default=22.0, ge=0)
    face_interval_ms: PositiveInt = Field(default=1_000, description="how often to look for faces")
    # This rather misses a picture than a person: where the camera moves over a picture, or shows it
    # too briefly, it becomes a person.
    still_looks: PositiveInt = Field(
        default=4, description="looks at a face that never moves until it is taken for a picture"
    )
    still_change: float = Field(
        default=3.0,
        ge=0,
        le=255,
        description="levels of grey by which a picture of a face may change from look to look",
    )
    # The most that are kept of an identity, and that a new face or voice is compared with.
    face_exemplars: PositiveInt = 10
    voice_exemplars: PositiveInt = 20
    voice_turn_ms: PositiveInt = 2_000
    subtitles: Subtitles = Field(default="ignore", description="as in the paper")


Density = Literal["sparse", "normal", "dense"] | PositiveInt
"""Maximum lines of memory per clip, not counting quotations: a name or a number."""

DENSITIES = {"sparse": 8, "normal": 24, "dense": 48}


ClipViewKind = Literal["keyframes", "frames", "video"]
"""What a language model that writes memories is shown of a clip."""

IMAGE_TOKENS = 1_100
"""As many as the dearest of the usual models takes for one image of 720 lines."""
VIDEO_SECOND_TOKENS = 300
"""As many as the dearest of the usual models takes for one second of video with sound."""
CLIP_TRIES = 3
"""How often a language model is asked for a clip in all."""
LINE_TOKENS = 30
"""Tokens of one line of memory, or of one description, in a model's reply."""
REPLY_SHARE = (2, 5)
"""The part of each try's tokens that is kept for the reply: two of five."""

MIN_CLIP_TOKENS = 12_000
"""With fewer tokens, nothing of a clip would fit into a prompt."""
MAX_CLIP_TOKENS = 10**9
"""Practically no limit; it must fit into an integer column, since it is stored with each clip."""


class MemorySettings(Frozen, allow_inf_nan=False):
    """Section 3.2 and 3.3: clip memories and the event graph."""

    density: Density = "normal"
    clip_tokens: int = Field(
        default=60_000,
        ge=MIN_CLIP_TOKENS,
        le=MAX_CLIP_TOKENS,
        description="for a clip's memory by a language model, all tries together, besides what "
        "its frames or its video take",
    )
    clip_view: ClipViewKind = Field(
        default="frames", description="what a language model that sees is shown of a clip"
    )
    # Three keyframes a clip show a model 48 % of what happens in a film with an event every seven
    # seconds; twelve frames show all.
    clip_frames: PositiveInt = Field(
        default=12, description="frames shown besides the keyframes: as many as change, at most"
    )
    second_look: bool | None = Field(
        default=None,
        description="whether a model looks at a clip again for what its lines cannot answer; "
        "None: where density is dense",
    )
    clip_frame_side: PositiveInt = Field(default=768, description="pixels of their longer side")
    clip_video_height: int = Field(default=720, ge=16, le=720)
    clip_video_bytes: PositiveInt = Field(
        default=14_000_000, description="at most; requests of 20 MB are taken by most servers"
    )
    hour_tokens: PositiveInt | None = Field(
        default=None, description="the same for an hour of video, of which each clip has its share"
    )
    clips_at_once: int = Field(
        default=2, ge=1, le=8, description="clips that a language model writes at a time"
    )
    strategies: tuple[str, ...] = Field(
        default=("homer",), description="whose own memory is built of a video that is watched"
    )
    # Section 3.3: after every ten clips the writer is given the last patch and the new memories.
    patch_every: PositiveInt = 10
    # Above this cosine a new fact about the same people strengthens the old one.
    same_fact: float = Field(default=0.85, gt=0, le=1)
    segments_min: PositiveInt = 3
    segments_max: PositiveInt = 8
    segment_clips: PositiveInt = 40
    label_words: int = Field(default=8, ge=5, description="as many as a time of day takes")
    patch_repairs: int = Field(default=2, ge=0)

    @property
    def lines(self) -> int:
        """Maximum lines of memory per clip, not counting quotations, which are all kept."""
        return DENSITIES[self.density] if isinstance(self.density, str) else self.density

    @property
    def looks_twice(self) -> bool:
        """Whether a language model that sees looks at each clip again."""
        return self.density == "dense" if self.second_look is None else self.second_look

    @model_validator(mode="after")
    def _check_patch_size(self) -> Self:
        if self.patch_every > self.segment_clips:
            raise ValueError("patch_every is more than segment_clips: no segment could cover it")
        return self


class AskSettings(Frozen):
    """Section 4: the loop, its budgets and its thresholds."""

    strategy: str = Field(
        default="homer", description="how memory is searched: see 'homer strategies'"
    )
    subtasks: PositiveInt = 5
    attempts: PositiveInt = 3
    rounds: PositiveInt = 10
    images: PositiveInt = 5
    plan_temperature: float = 0.2
    act_temperature: float = 0.8
    retries: int = Field(default=2, ge=0)
    seconds: float = Field(default=300.0, gt=0)
    # The paper has 50,000, which a language model that is given all that was found exceeds.
    tokens: PositiveInt = Field(default=200_000, description="ten rounds take 50 000 to 150 000")
    moments: PositiveInt = Field(
        default=5, description="lines of the whole view that EVENT adds for a language model"
    )
    answers: Literal["evidence", "best_guess"] = Field(
        default="evidence",
        description="best_guess: for evaluations whose judge counts silence as wrong",
    )
    empty_rounds: PositiveInt = 2
    # Overlap (Jaccard) of the words of a query with two earlier ones in the same mode, above which
    # it is blocked.
    same_query: float = Field(default=0.7, gt=0, le=1)
    # The share of new words in what a round found, below which it brought little; the second one
    # counts where the focus was seen before.
    low_increment: float = 0.15
    low_increment_seen: float = 0.30
    saturated_after: PositiveInt = 2
    # A plan is repaired after so many rounds without new evidence, or on one focus, and only so
    # much of it is changed.
    replans: int = Field(default=2, ge=0)
    replan_stale_rounds: PositiveInt = 2
    replan_focus_rounds: PositiveInt = 3
    replan_adds: PositiveInt = 3
    replan_abandons: PositiveInt = 5
    # The next mode is forced after so many rounds on one focus with nothing new; the authors' code
    # only suggests it.
    lock_on_rounds: PositiveInt = 2
    event_neighbours: PositiveInt = 3
    # VIDEO shows so many of the focus segment's clips, those whose best memory is at least so
    # close.
    video_cosine: float = 0.5
    video_clips: PositiveInt = 2
    character_memories: PositiveInt = 10
    skill_cosine: float = Field(default=0.45, ge=-1, le=1, description="section 3: above it")
    skill_tokens: int = Field(default=600, ge=0, description="room for skills in the prompt")
    skills: bool = Field(default=True, description="whether questions are given skills")
    memory: AblationStage = Field(
        default=AblationStage.WHOLE, description="how much of the memory is searched"
    )
    bearing: float = Field(
        default=0.02, ge=0, le=1, description="least support of evidence that settles a subtask"
    )
    weak_support: float = Field(
        default=0.3, ge=0, le=1, description="support below it is called weak"
    )


Pool = Literal["threads", "processes", "dask", "ray"]
"""What runs the perception workers: threads, processes, or one of Prefect's task runners."""

CLUSTERS = ("dask", "ray")
"""Pools that are Prefect task runners, and need its server."""


class WorkSettings(Frozen):
    """Where and how many clips are perceived at a time; the resulting memory is the same."""

    workers: PositiveInt = Field(default=1, description="clips perceived at a time")
    pool: Pool | None = Field(
        default=None, description="None: threads for one worker, else processes"
    )
    scheduler: str | None = Field(
        default=None,
        pattern=r"^(tcp|tls|ray)://.+$",
        description="of a cluster that runs already; None: one of this machine and run",
    )
    at_once: PositiveInt | None = Field(
        default=None,
        description="clips perceived at a time by all commands of this machine; None: no limit",
    )

    @property
    def where(self) -> Pool:
        return self.pool or ("threads" if self.workers == 1 else "processes")

    def changed(self, workers: int | None = None, pool: Pool | None = None) -> Self:
        """Return these settings with the given values replaced."""
        changes = {"workers": workers, "pool": pool}
        return self.model_copy(update={key: value for key, value in changes.items() if value})


class DoingSettings(Frozen, allow_inf_nan=False):
    """How much each signal counts, in cosines, where options are compared as somebody's doings."""

    doing: float = Field(default=1.0, description="the closest line to the option as a doing")
    statement: float = Field(default=1.0, description="the line to the question with the option")
    words: float = Field(default=0.5, description="the option's own words, 1: every line has all")


Window = tuple[int, float]
"""Half width in clips, and weight."""


class SearchSettings(Frozen, allow_inf_nan=False):
    """How much each signal of a search counts, in standard deviations. Round on purpose."""

    question_line: float = Field(default=1.0, description="the closest line to the question")
    question_cell: float = Field(default=0.5, description="the clip as a whole to the question")
    question_windows: tuple[Window, ...] = Field(
        default=((0, 0.5), (1, 0.5), (3, 0.5), (10, 0.5)),
        description="words of the question in windows of clips: half width, weight",
    )
    statement_line: float = Field(default=0.5, description="as question_line, with an option")
    statement_cell: float = Field(default=0.5, description="as question_cell, with an option")
    option_line: float = Field(default=1.0, description="as question_line, an option alone")
    option_cell: float = Field(default=0.5, description="as question_cell, an option alone")
    option_windows: tuple[Window, ...] = Field(
        default=((0, 1.0), (1, 0.5)), description="words that only an option has"
    )
    recency: float = Field(default=0.5, description="times -ln(hours ago)")
    recency_last_times: float = Field(
        default=1.0, description="the same, where options are times and the last is asked for"
    )
    question_time: float = Field(default=1.0, description="times ln(fit to the time asked about)")
    option_time: float = Field(default=4.0, description="times ln(fit to the time an option says)")
    actor: float = Field(default=1.0, description="who does it, where options are people")
    doings: DoingSettings = Field(
        default=DoingSettings(), description="over short captioned videos, instead of all above"
    )


# Size limits on files that come from outside.

MB = 1 << 20
GB = 1 << 30


class ImportLimits(Frozen):
    """Limits on exports, back-ups, files of ``--keep-undo`` and captions.

    A file that exceeds one of them is rejected as a whole, before it fills memory or the disk.
    """

    line_mb: PositiveInt = Field(default=16, le=1_000, description="a row of a table")
    blob_mb: PositiveInt = Field(default=64, le=4_000, description="an image")
    image_mp: PositiveInt = Field(default=34, le=200, description="megapixels of an image")
    total_gb: PositiveInt = Field(default=500, description="a whole file, unpacked")
    ratio: PositiveInt = Field(default=200, description="how many times smaller it may be packed")
    rows: PositiveInt = Field(
        default=10_000_000, description="of an export or a file of --keep-undo"
    )
    captions_mb: PositiveInt = Field(default=128, le=4_000, description="captions, unpacked")


DEFAULT_LIMITS = ImportLimits()
"""The limits unless configured otherwise."""


# Retention: how much of a video is kept by age; everything unless configured.

Keep = Literal["fewer", "text", "nothing"]
RANK: dict[Keep, int] = {"fewer": 0, "text": 1, "nothing": 2}


class Tier(Frozen):
    """What is kept from an age on: fewer and smaller keyframes, text only, or nothing.

    ``keyframes`` a clip, of at most ``side`` pixels, stay if ``keep`` is "fewer".
    """

    after_days: float = Field(gt=0)
    keep: Keep
    keyframes: PositiveInt = 1
    side: PositiveInt = 320


class RetainSettings(Frozen):
    """Tiers by age since watching, youngest first; before the first one everything is kept."""

    tiers: tuple[Tier, ...] = ()

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for earlier, later in pairwise(self.tiers):
            if later.after_days <= earlier.after_days:
                raise ValueError("tiers must begin one after the other")
            if RANK[later.keep] < RANK[earlier.keep]:
                raise ValueError(f"{later.keep!r} keeps more than {earlier.keep!r} before it")
        return self

    def tier(self, age: timedelta) -> Tier | None:
        """Return the tier of a video of that age; None: everything is kept."""
        due = [tier for tier in self.tiers if age >= timedelta(days=tier.after_days)]
        return due[-1] if due else None


class Settings(Frozen):
    """Everything that can be set, with the paper's values."""

    watch: WatchSettings = WatchSettings()
    memory: MemorySettings = MemorySettings()
    ask: AskSettings = AskSettings()
    stream: StreamSettings = StreamSettings()
    alerts: AlertSettings = AlertSettings()
    work: WorkSettings = WorkSettings()
    retain: RetainSettings = RetainSettings()
    imports: ImportLimits = ImportLimits()
    search: SearchSettings = SearchSettings()

    @property
    def clip_budget(self) -> int:
        """Maximum tokens that a language model may use for the memory of one clip."""
        hour = self.memory.hour_tokens
        # Besides the keyframes, every try shows the clip's frames, or the clip as a video.
        view_tokens = {
            "keyframes": 0,
            "frames": self.memory.clip_frames * IMAGE_TOKENS,
            "video": round(self.watch.clip_ms / 1_000 * VIDEO_SECOND_TOKENS),
        }[self.memory.clip_view]
        reply, whole = REPLY_SHARE
        for_view = CLIP_TRIES * view_tokens * whole // (whole - reply)
        clip = min(MAX_CLIP_TOKENS, self.memory.clip_tokens + for_view)
        return clip if hour is None else min(clip, hour * self.watch.clip_ms // HOUR_MS)

    @model_validator(mode="after")
    def _check_clip_budget(self) -> Self:
        if self.clip_budget < MIN_CLIP_TOKENS:
            least = -(-MIN_CLIP_TOKENS * HOUR_MS // self.watch.clip_ms)
            raise ValueError(f"memory.hour_tokens is too little for these clips: at least {least}")
        return self
