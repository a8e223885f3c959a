"""SQLAlchemy's questions for names and columns, as Superset asks them."""

from __future__ import annotations

import pytest
from hudi_engine.server.server import HudiServer
from sqlalchemy import MetaData, Table, create_engine, inspect, select, text
from sqlalchemy.dialects import registry

registry.register("hive", "pyhive.sqlalchemy_hive", "HiveDialect")


@pytest.mark.filterwarnings("ignore")
def test_names_columns_and_rows_are_found(server: HudiServer) -> None:
    engine = create_engine(f"hive://127.0.0.1:{server.port}/shop?auth=NOSASL")
    with engine.connect() as connection:
        connection.execute(
            text(
                "create or replace table shop.visits using hudi tblproperties (primaryKey = 'id', type = 'mor') as "
                "select 1 id, 'a' page, timestamp'2026-01-01 10:00:00' at"
            )
        )
        found = inspect(connection)
        assert {"default", "shop"} <= set(found.get_schema_names())
        assert "visits" in found.get_table_names("shop")
        assert [each["name"] for each in found.get_columns("visits", "shop")] == ["id", "page", "at"]
        assert found.has_table("visits", "shop")
        visits = Table("visits", MetaData(), autoload_with=connection)
        assert connection.execute(select(visits.c.page).where(visits.c.id == 1).limit(10)).fetchall() == [
            ("a",)
        ]
    engine.dispose()
