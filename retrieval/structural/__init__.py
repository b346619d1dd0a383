"""Structural searches: people, voices, beginning and end, first and last mentions, order."""

from retrieval.structural.search import structural
from retrieval.structural.videos import MOST_VIDEOS, answered_by_video
from retrieval.structural.whereabouts import where_last_seen

__all__ = ["MOST_VIDEOS", "answered_by_video", "structural", "where_last_seen"]
