"""Prefect flows and tasks: wiring, retries, schedules."""
