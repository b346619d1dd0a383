"""The tables by aggregate. Alembic owns them and compares against these definitions."""
