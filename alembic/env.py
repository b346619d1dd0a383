"""Run migrations on the given connection, else on the database that Homer would open."""

from __future__ import annotations

import os

from alembic import context
from sqlalchemy import Connection, create_engine

from store.driver import parse_url
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.tables.schema import Base


def run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=Base.metadata)
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    url = os.environ.get("HOMER_DATABASE_URL") or EmbeddedPostgres(Home.default()).start()
    with create_engine(parse_url(url)).begin() as opened:
        run(opened)
