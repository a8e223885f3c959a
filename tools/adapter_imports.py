"""The import contracts of the adapter, in adapter_imports.toml.

`lint-imports` takes no package below one that has an `__init__.py`, as `dbt` has where dbt is installed.
"""

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from importlinter.cli import lint_imports

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Check the contracts, with `dbt` and `dbt.adapters` as the namespaces that they are in this repository."""
    for name in ("dbt", "dbt.adapters"):
        folder = str(ROOT / name.replace(".", "/"))
        module, spec = ModuleType(name), ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [folder]
        module.__spec__, module.__path__ = spec, [folder]
        sys.modules[name] = module
    return lint_imports(config_filename=str(Path(__file__).with_suffix(".toml")), no_logo=True)


if __name__ == "__main__":
    sys.exit(main())
