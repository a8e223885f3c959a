#!/usr/bin/env python3
"""One script for everything that comes first; it needs Python 3.10 or newer and git, nothing else.

python3 dev.py demo               set up, build a dbt project over a year of real flights, read it back
python3 dev.py test [TIER ...]    set up and run the tests, all tiers or the named ones (--long: the long ones too)
python3 dev.py setup              only set up
python3 dev.py bench [NAME]       times against other table formats, cores, memory (about an hour); NAME: longevity, large, ...
python3 dev.py reliability [ROW]  the long form of the scorecard (--minutes N a row, --scale 0.1: a tenth of it)
python3 dev.py docs               the documentation as a site, in .cache/site
python3 dev.py run COMMAND ...    run a command inside the environment, e.g. dev.py run dbt --version
python3 dev.py changelog 1.2.3    make a version of the fragments in changelog.d
python3 dev.py help               this text and the list of tiers
"""

import shutil
import subprocess
import sys

# This file alone is read by any Python 3, so that an old one gets a sentence instead of a syntax error.
OLDEST, NEWEST = (3, 10), (3, 13)


def works(name):
    """Tell whether a Python starts."""
    return subprocess.call([name, "-c", ""], stderr=subprocess.DEVNULL) == 0


def refusal():
    """Say why this Python cannot be used and what to do, or return None when it can."""
    if sys.version_info[:2] >= OLDEST:
        return None
    names = ["python3.%d" % minor for minor in range(NEWEST[1], OLDEST[1] - 1, -1)]
    # A version manager can have a name on the path that it does not run.
    found = [name for name in names if shutil.which(name) and works(name)]
    if found:
        step = "run `%s dev.py %s`" % (found[0], " ".join(sys.argv[1:]) or "demo")
    else:
        step = "install Python 3.11 (`apt-get install python3`, `brew install python@3.11`) and use it"
    return "dbt-hudi needs Python 3.10 or newer; this is Python %d.%d.%d (%s). Next step: %s." % (
        tuple(sys.version_info[:3]) + (sys.executable, step)
    )


def main():
    """Check the Python, then hand over."""
    reason = refusal()
    if reason:
        sys.exit(reason)
    from tools.commands import run

    return run(sys.argv[1:], __doc__)


if __name__ == "__main__":
    sys.exit(main())
