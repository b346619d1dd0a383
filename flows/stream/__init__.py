"""Watching a live stream: its steps, as plain calls or as Prefect's flow."""
