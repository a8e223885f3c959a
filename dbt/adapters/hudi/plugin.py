"""The plug-in that dbt loads."""

# ruff: noqa: E402 - before the imports that fill the memory

from dbt.adapters.hudi.dbt_version import check_installed
from dbt.adapters.hudi.process_end import freeze_loaded_objects, skip_collection_at_exit

check_installed()
freeze_loaded_objects()

from dbt.adapters.base.plugin import AdapterPlugin

from dbt.adapters.hudi.column import HudiColumn
from dbt.adapters.hudi.connections import HudiConnectionManager
from dbt.adapters.hudi.credentials import HudiCredentials
from dbt.adapters.hudi.impl import HudiAdapter
from dbt.adapters.hudi.relation import HudiRelation
from dbt.include import hudi

__all__ = ["HudiAdapter", "HudiColumn", "HudiConnectionManager", "HudiCredentials", "HudiRelation", "Plugin"]

Plugin = AdapterPlugin(
    adapter=HudiAdapter,  # type: ignore[arg-type]
    credentials=HudiCredentials,
    include_path=hudi.PACKAGE_PATH,
    dependencies=["spark"],
)

skip_collection_at_exit()
