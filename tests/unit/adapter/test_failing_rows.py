"""What a table of failing rows holds of what a test selects."""

from __future__ import annotations

from pyspark.sql import types as T

from dbt.adapters.hudi.rows.failing_rows import failures_query, legal_names


def test_names_that_a_table_cannot_have_are_made_legal_and_the_others_stay() -> None:
    given = ["id", "count(1)", "1st", "ID", "a b", "a_b", "id_2"]
    assert legal_names(given) == ["id", "count_1_", "_1st", "ID_3", "a_b_2", "a_b", "id_2"]
    assert legal_names(["sum(x)", "sum[x]", "é"]) == ["sum_x_", "sum_x_2", "_"]
    said = "select * from (\nselect count(1) -- all\n) as failures (`count_1_`)"
    assert failures_query("select count(1) -- all", T.StructType().add("count(1)", T.LongType())) == said


def test_types_that_a_table_cannot_hold_become_text_and_moments() -> None:
    columns = (
        T.StructType().add("id", T.IntegerType()).add("at", T.TimestampNTZType()).add("what is", T.NullType())
    )
    columns.add("numbered", T.MapType(T.IntegerType(), T.StringType()))
    said = failures_query("q", columns)
    assert said.startswith(
        "select `id`, cast(`at` as timestamp) as `at`, cast(`what_is` as string) as `what_is`, "
        "cast(`numbered` as string) as `numbered` from (\nq\n)"
    )
