"""Recurring jobs: their kinds, their times, and the worker that runs them."""
