"""Classes of the suite that pass as they are."""

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.constraints import test_constraints as constraints
from dbt.tests.adapter.dbt_clone import test_dbt_clone as clone
from dbt.tests.adapter.dbt_debug import test_dbt_debug as debug
from dbt.tests.adapter.functions import test_udfs as functions
from dbt.tests.adapter.hooks import test_model_hooks as model_hooks
from dbt.tests.adapter.hooks import test_run_hooks as run_hooks
from dbt.tests.adapter.simple_copy import test_simple_copy as simple_copy
from dbt.tests.adapter.simple_seed import test_seed as seeds
from dbt.tests.adapter.utils import test_escape_single_quotes as quotes
from dbt.tests.adapter.utils import test_listagg as listagg


class TestIncrementalForeignKeyConstraint(constraints.BaseIncrementalForeignKeyConstraint):
    pass


class TestCloneNotPossible(clone.BaseCloneNotPossible):
    pass


class TestCloneSameSourceAndTarget(clone.BaseCloneSameSourceAndTarget):
    pass


class TestDebug(debug.BaseDebugPostgres):
    pass


class TestErrorForUnsupportedType(functions.ErrorForUnsupportedType):
    pass


class TestPythonUDFNotSupported(functions.PythonUDFNotSupported):
    pass


class TestPythonUDFRuntimeVersionRequired(functions.PythonUDFRuntimeVersionRequired):
    pass


class TestPythonUDFEntryPointRequired(functions.PythonUDFEntryPointRequired):
    pass


class TestModelHooksOnSeeds(model_hooks.BasePrePostModelHooksOnSeeds):
    pass


class TestModelHooksOnSeedsPlusPrefixed(model_hooks.BasePrePostModelHooksOnSeedsPlusPrefixed):
    pass


class TestModelHooksOnSeedsPlusPrefixedWhitespace(
    model_hooks.BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace
):
    pass


class TestModelHooksOnSnapshots(model_hooks.BasePrePostModelHooksOnSnapshots):
    pass


class TestSnapshotHooksInConfigKwargs(model_hooks.BasePrePostSnapshotHooksInConfigKwargs):
    pass


class TestAfterRunHooks(run_hooks.BaseAfterRunHooks):
    pass


class TestSimpleCopy(simple_copy.SimpleCopyBase):
    @pytest.mark.skip("there are no materialized views in a Spark session")
    def test_simple_copy_with_materialized_views(self, project: object) -> None:
        """Not applicable."""


class TestSimpleSeedWithBOM(seeds.BaseSimpleSeedWithBOM):
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, suite_files: object, project: Any) -> None:  # noqa: N802
        """The expected rows, and the seed, which lies beside the suite."""
        project.run_sql(seeds.seeds.seeds__expected_sql)
        name = "seed_bom.csv"
        seeds.copy_file(project.test_dir, name, project.project_root / Path("seeds") / name, "")


class TestEscapeSingleQuotesQuote(quotes.BaseEscapeSingleQuotesQuote):
    pass


class TestListagg(listagg.BaseListagg):
    pass
