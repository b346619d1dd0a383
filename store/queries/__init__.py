"""Queries on the database, by subject."""
