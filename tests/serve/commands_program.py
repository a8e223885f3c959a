"""dbt commands read from standard input, one a line of JSON, run in one process; a line of JSON with the result of each goes out."""

from __future__ import annotations

import json
import sys

from dbt.cli.main import dbtRunner


def main() -> None:
    for line in sys.stdin:
        result = dbtRunner().invoke(json.loads(line))
        error = None if result.exception is None else str(result.exception)
        sys.stdout.write("RESULT " + json.dumps({"success": result.success, "error": error}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
