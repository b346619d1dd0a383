"""The tables by aggregate. Alembic owns them; these are what it compares against."""
