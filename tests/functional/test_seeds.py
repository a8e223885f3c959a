"""CSV seeds."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseSeedConfigFullRefreshOff,
    BaseSeedCustomSchema,
    BaseSeedParsing,
    BaseSeedWithEmptyDelimiter,
    BaseSeedWithUniqueDelimiter,
    BaseSeedWithWrongDelimiter,
    BaseSimpleSeedEnabledViaConfig,
    BaseTestEmptySeed,
)
from dbt.tests.util import run_dbt


@pytest.mark.long
class TestSeedConfigFullRefreshOff(BaseSeedConfigFullRefreshOff):
    pass


class TestSeedCustomSchema(BaseSeedCustomSchema):
    pass


@pytest.mark.long
class TestSeedWithUniqueDelimiter(BaseSeedWithUniqueDelimiter):
    pass


class TestSeedWithWrongDelimiter(BaseSeedWithWrongDelimiter):
    def test_seed_with_wrong_delimiter(self, project) -> None:  # noqa: ANN001
        """The header is taken for one column, whose name Hudi cannot hold; the message says so."""
        result = run_dbt(["seed"], expect_pass=False)
        assert "column name 'seed_id|first_" in result.results[0].message
        assert "rename it in the first line of the file" in result.results[0].message


@pytest.mark.long
class TestSeedWithEmptyDelimiter(BaseSeedWithEmptyDelimiter):
    pass


@pytest.mark.long
class TestSimpleSeedEnabledViaConfig(BaseSimpleSeedEnabledViaConfig):
    pass


class TestSeedParsing(BaseSeedParsing):
    pass


class TestSeedWithBOM:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"seed_bom.csv": "\ufeffseed_id,first_name\n1,Larry\n"}

    def test_a_byte_order_mark_is_not_part_of_the_first_column(self, project, unique_schema) -> None:  # noqa: ANN001
        run_dbt(["seed"])
        assert project.run_sql(f"select seed_id, first_name from {unique_schema}.seed_bom", fetch="all") == [
            (1, "Larry")
        ]


class TestTypesOfColumnsInAnotherCase:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"coded.csv": "code;at;n\n007;2026-01-01;1\n1.10;2026-01-02;2\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        types = "{{ var('types', {}) }}"
        return {"seeds": {"test": {"coded": {"+column_types": types, "+delimiter": ";"}}}}

    def test_a_text_is_what_the_file_says(self, project: Any) -> None:
        types = {"code": "string", "at": "string", "n": "int"}
        run_dbt(["seed", "--vars", str({"types": types})])
        found = project.run_sql("select * from {schema}.coded order by n", fetch="all")
        assert [tuple(row) for row in found] == [("007", "2026-01-01", 1), ("1.10", "2026-01-02", 2)]
        types["CODE"] = types.pop("code")
        (refused,) = run_dbt(["seed", "--vars", str({"types": types})], expect_pass=False)
        assert "names 'CODE', and the file has 'code'; spell it as in the file" in refused.message


class TestTypesThatAreLegal:
    """Each type that the message about another one lists can be that of a column of a file."""

    WORDS = (
        *(
            "boolean",
            "tinyint",
            "smallint",
            "int",
            "bigint",
            "float",
            "double",
            "decimal(4, 2)",
            "string",
            "varchar(9)",
        ),
        *("char(9)", "binary", "date", "timestamp", "timestamp_ltz"),
    )

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        names = [f"c{number}" for number in range(len(self.WORDS))]
        times = "2026-01-02,2026-01-02 10:00:00,2026-01-02 10:00:00+00:00"
        row = f"true,1,1,1,1,1.5,1.5,1.5,a,a,a,a,{times}"
        return {"typed.csv": f"{','.join(names)}\n{row}\n", "empty.csv": f"{','.join(names)}\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"seeds": {"+column_types": {f"c{place}": word for place, word in enumerate(self.WORDS)}}}

    @pytest.mark.parametrize("word", ["TIMESTAMP_LTZ", "TIMESTAMP_NTZ"])
    def test_they_are_loaded_whatever_spark_takes_a_timestamp_for(self, project: Any, word: str) -> None:
        with project.adapter.connection_named("look"):
            with project.adapter.connections.get_thread_connection().handle.job("look") as session:
                session.conf.set("spark.sql.timestampType", word)
                try:
                    run_dbt(["seed", "--full-refresh"])
                finally:
                    session.conf.unset("spark.sql.timestampType")
        told = project.run_sql("describe {schema}.typed", fetch="all")
        kinds = [row[1] for row in told if str(row[0]).startswith("c")]
        assert kinds[7:] == ["decimal(4,2)", *["string"] * 3, "binary", "date", "timestamp", "timestamp"]
        assert project.run_sql("select count(*) from {schema}.typed", fetch="one") == (1,)


class TestTestEmptySeed(BaseTestEmptySeed):
    pass
