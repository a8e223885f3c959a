"""`python -m hudi_engine.cli` is `hudi-engine`."""

import sys

from hudi_engine.cli.program import main

sys.exit(main())
