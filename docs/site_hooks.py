"""What the documentation site adds to the pages of this folder: pages of the repository's root, and links to them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
# Page of the site: its file in the repository.
ROOT_PAGES = {
    "architecture.md": "ARCHITECTURE.md",
    "changelog.md": "CHANGELOG.md",
    "demo.md": "integration_tests/README.md",
}
PICTURES = ("benchmarks/growth.png", "benchmarks/results.png")
_LINK = re.compile(r"(!?\[[^\]]*\])\(([^)\s]+)\)")
_SITE = {source: page for page, source in ROOT_PAGES.items()} | {"README.md": "index.md"}


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and pictures that lie outside of the folder."""
    for page, source in ROOT_PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_links_of_site(text, Path(source).parent)))
    for picture in PICTURES:
        files.append(File.generated(config, picture, abs_src_path=str(ROOT / picture)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links that leave the folder to their page of the site."""
    return markdown if page.file.src_uri in ROOT_PAGES else _links_of_site(markdown, Path("docs"))


def _links_of_site(text: str, folder: Path) -> str:
    return _LINK.sub(lambda found: _link_of_site(found, folder), text)


def _link_of_site(found: re.Match[str], folder: Path) -> str:
    """Return a link as the site has it; one to a file that the site leaves out is plain text."""
    words, target = found.groups()
    path, _, anchor = target.partition("#")
    if "://" in target or not path or path.startswith("mailto:"):
        return found.group(0)
    try:
        place = (ROOT / folder / path).resolve().relative_to(ROOT).as_posix()
    except ValueError:
        return words
    if place in _SITE:
        page = _SITE[place]
    elif place in PICTURES:
        page = place
    elif place.startswith("docs/") and (ROOT / place).is_file():
        page = place[len("docs/") :]
    else:
        return words.strip("![]")
    return f"{words}({page}{'#' + anchor if anchor else ''})"
