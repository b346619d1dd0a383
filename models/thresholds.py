"""Cosine thresholds of identity: from which two vectors are one person, by model of a profile.

They are kept apart from the adapters so that they can be read without loading a model.
"""

from __future__ import annotations

FACES = {
    # Of the small pack every true face of a clip with known identities scored 0.60 or more, with
    # a quality of 14 or more; the paper's 0.85 and 22 belong to a larger one.
    "insightface": 0.3,
    # OpenCV gives 0.363 for the unquantised model. Of this one, on a clip with known identities,
    # 99 % of the pairs of different people lie below 0.50 and 95 % of the pairs of one above 0.52.
    "yunet_sface": 0.48,
}
VOICES = {
    # On two-second turns of meetings and interviews with known speakers: one pair of the same voice
    # in ten lies below, one pair of different voices in five hundred above.
    "wespeaker": 0.4,
}


def same_face(model: str) -> float:
    """Return the cosine of a face engine, also of a named pack (``insightface:buffalo_l``)."""
    return FACES.get(model.partition(":")[0], FACES["insightface"])


def same_voice(model: str) -> float:
    """Return the cosine of a speaker encoder."""
    return VOICES.get(model, VOICES["wespeaker"])
