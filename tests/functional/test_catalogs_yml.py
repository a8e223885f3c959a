"""catalogs.yml: models name a catalog, and its folder holds their tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.tests.util import run_dbt, write_file


def catalogs(root: Path, **more: Any) -> dict[str, Any]:
    """A catalogs.yml of two catalogs: ``lake`` below a folder of its own and ``metastore``."""
    lake = {"name": "files", "catalog_type": "directory", "external_volume": str(root / "lake"), **more}
    hive = {"name": "hms", "catalog_type": "hive", "table_format": "hudi"}
    return {
        "catalogs": [
            {"name": "lake", "active_write_integration": "files", "write_integrations": [lake]},
            {"name": "metastore", "active_write_integration": "hms", "write_integrations": [hive]},
        ]
    }


class TestCatalogs:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "here.sql": "select 1 as id",
            "there.sql": "{{ config(materialized='table', catalog_name='lake') }} select 2 as id",
            "own.sql": "{{ config(materialized='table', catalog_name='lake', location_root='elsewhere') }} select 3 as id",
        }

    def test_the_volume_of_a_catalog_is_where_its_tables_are(self, project: Any, tmp_path: Path) -> None:
        write_file(yaml.safe_dump(catalogs(tmp_path)), project.project_root, "catalogs.yml")
        assert len(run_dbt(["run"])) == 3
        assert (tmp_path / "lake" / "there" / ".hoodie").is_dir()
        assert (Path(project.project_root) / "elsewhere" / "own" / ".hoodie").is_dir()
        assert project.run_sql("select id from {schema}.there", fetch="one")[0] == 2

    def test_a_catalog_of_another_type_than_the_profiles_is_refused(
        self, project: Any, tmp_path: Path
    ) -> None:
        write_file(yaml.safe_dump(catalogs(tmp_path)), project.project_root, "catalogs.yml")
        model = "{{ config(materialized='table', catalog_name='metastore') }} select 2 as id"
        write_file(model, project.project_root, "models", "there.sql")
        with pytest.raises(
            Exception, match="'metastore', a catalog of type 'hive'.*profile's is 'directory'"
        ):
            raise_of(run_dbt(["run", "-s", "there"], expect_pass=False))

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            ({"table_format": "iceberg"}, "table_format is 'iceberg'"),
            ({"file_format": "orc"}, "file_format is 'orc'"),
            ({"adapter_properties": {"rot": 1}}, "adapter_properties has rot; known: location_root"),
        ],
    )
    def test_what_a_catalog_cannot_be_is_said(
        self, project: Any, tmp_path: Path, more: dict[str, Any], said: str
    ) -> None:
        write_file(yaml.safe_dump(catalogs(tmp_path, **more)), project.project_root, "catalogs.yml")
        with pytest.raises(Exception, match=said):
            raise_of(run_dbt(["parse"], expect_pass=False))


def raise_of(results: Any) -> None:
    """Raise what a run says went wrong."""
    raise AssertionError(str([result.message for result in results.results]))
