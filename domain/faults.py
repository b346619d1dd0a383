"""Fault points: named places where a test may kill the process, database, disk or model.

Outside of tests they do nothing. Call ``faults.fault_point(...)`` through the module, so that a
test can replace it.
"""

from __future__ import annotations

from enum import StrEnum


class FaultPoint(StrEnum):
    """Places where a fault is injected, each between two things that must stay consistent."""

    # Watching
    DECODED = "after decoding a clip"
    PERCEIVED = "after perceiving a clip"
    CLIP_ROWS = "after the rows of a clip"
    BLOB_WRITING = "while a blob is written"
    BLOB_WRITTEN = "after a blob is written"
    CLIP_COMMITTING = "before a clip is committed"
    CLIP_COMMITTED = "after a clip is committed"
    PATCH_ROWS = "after the rows of a patch"
    PATCH_COMMITTED = "after a patch is committed"
    VIDEO_DONE = "after a video is marked as done"
    BUILD_ROWS = "after the rows of a step of a build"
    BUILD_COMMITTED = "after a step of a build is committed"
    # Models, of watching, asking and learning
    CALL_SENDING = "before a model is called"
    CALL_ANSWERED = "after a model has answered"
    CALL_RECORDED = "after a call is recorded"
    # Asking
    QUESTION_ADDED = "after a question is on record"
    SEARCHED = "after a search"
    EVENTS_WRITING = "before a step's events"
    EVENTS_WRITTEN = "after a step's events"
    ANSWER_WRITING = "before an answer is written"
    ANSWER_WRITTEN = "after an answer is written"
    # Changing the text encoder
    REEMBEDDED_BATCH = "after a batch of new vectors"
    REEMBEDDED = "after the library was changed over to new vectors"
    # Learning
    OBSERVED = "after observations"
    SKILL_WRITTEN = "after a skill is written"
    BANNED = "after skills are banned"
    # Backing up, restoring, importing
    BACKUP_ROWS = "after the rows of a back-up"
    BACKUP_IMAGES = "after the images of a back-up"
    BACKUP_PLACING = "before a back-up is put in its place"
    RESTORED_ROWS = "after restored rows"
    RESTORED_IMAGES = "after restored images"
    RESTORED = "after a restored library is committed"
    IMPORTED_IMAGES = "after imported images"
    IMPORTED_ROWS = "after imported rows"
    IMPORTED = "after an imported video is committed"
    # Deleting
    DELETED_ROWS = "after the rows of a deleted video"
    DELETED = "after a deleted video is committed"
    CUT_ROWS = "after the rows of a deleted span"
    CUT = "after a deleted span is committed"
    BLOB_REMOVED = "after a blob is removed"


def fault_point(point: FaultPoint) -> None:
    """Do nothing; tests replace this function."""
