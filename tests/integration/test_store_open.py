from sqlalchemy import text

from store.database import Store


def test_a_fresh_store_has_tables_and_no_rows(store: Store) -> None:
    with store.begin() as session:
        assert session.execute(text("SELECT count(*) FROM videos")).scalar() == 0
