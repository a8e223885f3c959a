"""MERGE and the keys of rows that it inserts or moves."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtBaseException

from tests.helpers.hudi_rs import rows_by_hudi_rs

COLUMNS = ["id", "p", "n", "v"]


class TestKeysOfTheWholeTable:
    """A table whose key lacks the partition column keeps one row a key in all partitions (a global index)."""

    @pytest.mark.core
    @pytest.mark.parametrize("kind", ["cow", "mor"])
    def test_a_row_moves_with_its_partition_and_is_not_inserted_beside_that_of_another(
        self, project: Any, kind: str
    ) -> None:
        name = f"moving_{kind}"
        project.run_sql(
            f"create table {{schema}}.{name} (id int, n int, v string, p string) using hudi options (primaryKey 'id', "
            f"type '{kind}') partitioned by (p)"
        )
        project.run_sql(f"insert into {{schema}}.{name} values (1, 1, 'x', 'a'), (2, 1, 'x', 'a')")
        given = f"merge into {{schema}}.{name} t using (select 1 id, 5 n, 'y' v, 'b' p) s on t.id = s.id"
        with pytest.raises(DbtBaseException, match="id 1 is stored and not matched.* compare id in ON"):
            project.run_sql(f"{given} and t.p = s.p when not matched then insert *")
        project.run_sql(f"{given} when matched then update set * when not matched then insert *")
        path = str(project.project_root / "warehouse" / project.test_schema / name)
        assert sorted(rows_by_hudi_rs(path, COLUMNS)) == [(1, "b", 5, "y"), (2, "a", 1, "x")]
