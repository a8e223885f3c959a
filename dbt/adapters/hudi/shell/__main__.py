"""``python -m dbt.adapters.hudi.shell``, as the command ``dbt-hudi``."""

import sys

from dbt.adapters.hudi.shell.client import main

if __name__ == "__main__":
    sys.exit(main())
