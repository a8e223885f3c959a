"""``python -m dbt.adapters.hudi.shell``, as the command ``dbt-hudi``."""

import sys

from dbt.adapters.hudi.shell.session import main

sys.exit(main())
