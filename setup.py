"""What pyproject.toml cannot say: the page and the links of the project, wherever it is hosted."""

import os
import re
from pathlib import Path

from setuptools import setup

README = Path(__file__).parent / "README.md"
RELATIVE_LINK = re.compile(r"\[([^\]]+)\]\((?!https?://|#|mailto:)([^)\s]+)\)")
RELATIVE_PICTURE = re.compile(r"!" + RELATIVE_LINK.pattern)


def home():
    """Return the address of the repository this is built in, None when it is built anywhere else."""
    server, repository = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    return f"{server}/{repository}" if server and repository else None


def page(text, address):
    """Return the README as a package index can show it: links lead into the repository, or are plain words."""
    drawn = rf"![\1]({address}/raw/main/\2)" if address else r"\1"
    linked = rf"[\1]({address}/blob/main/\2)" if address else r"\1"
    return RELATIVE_LINK.sub(linked, RELATIVE_PICTURE.sub(drawn, text))


def links(address):
    """Return the links of the package index's side bar."""
    if not address:
        return {}
    return {
        "Source": address,
        "Documentation": f"{address}#documentation",
        "Changelog": f"{address}/blob/main/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }


if __name__ == "__main__":
    setup(
        long_description=page(README.read_text(encoding="utf-8"), home()),
        long_description_content_type="text/markdown",
        project_urls=links(home()),
    )
