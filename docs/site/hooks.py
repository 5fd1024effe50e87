"""Adds the repository's pages to the site, and adapts their links."""

import posixpath
import re
from fnmatch import fnmatch
from pathlib import Path

from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]

# The pages of the site. Links to all other files lead to the repository.
PUBLISHED = [
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
    "docs/*.md", "docs/decisions/*.md", "docs/site/*.md", "docs/charts/*.svg",
    "adapters/*/*.md", "adapters/*/*.png", "bench/README.md", "compat/*/README.md",
    "compress/*/README.md", "examples/*/README.md",
]


class SourceLinks(Treeprocessor):
    """Turns relative links to files that are not published into links to the repository."""

    def __init__(self, config):
        self.tree = config.repo_url.rstrip("/")
        self.files = self.page = None

    def run(self, root):
        for a in root.iter("a"):
            a.set("href", self.resolve(a.get("href", "")))

    def resolve(self, href):
        path, mark, anchor = href.partition("#")
        if not path or re.match(r"[a-z]+:|/", path):
            return href
        here = posixpath.dirname(self.page)
        target = posixpath.normpath(posixpath.join(here, path))
        if self.files.get_file_from_path(target):
            return href
        index = posixpath.join(target, "README.md")
        if self.files.get_file_from_path(index):  # the page of a folder
            return posixpath.relpath(index, here or ".") + mark + anchor
        if (ROOT / target).is_dir():
            return f"{self.tree}/tree/main/{target}{mark}{anchor}"
        if (ROOT / target).is_file():
            return f"{self.tree}/blob/main/{target}{mark}{anchor}"
        return href  # MkDocs reports the dead link


class Links(Extension):
    def __init__(self, links):
        self.links = links

    def extendMarkdown(self, md):
        # After links are parsed (20), before MkDocs checks them (0).
        md.treeprocessors.register(self.links, "source_links", 10)


links = None


def on_config(config):
    global links
    links = SourceLinks(config)
    config.markdown_extensions.append(Links(links))
    return config


def on_files(files, config):
    for pattern in PUBLISHED:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            files.append(File(name, str(ROOT), config.site_dir, config.use_directory_urls))
    links.files = files
    named = set(names(config.nav))
    config.nav = expand(config.nav, named, [f.src_uri for f in files.documentation_pages()])
    return files


def names(item):
    """Yields the pages and patterns in the navigation."""
    if isinstance(item, str):
        yield item
    else:
        for child in item.values() if isinstance(item, dict) else item:
            yield from names(child)


def expand(items, named, pages):
    """Returns the navigation with its patterns replaced by pages."""
    out = []
    for item in items:
        if isinstance(item, dict):
            (title, value), = item.items()
            out.append({title: value if isinstance(value, str) else expand(value, named, pages)})
        elif "*" not in item:
            out.append(item)
        else:
            depth = item.count("/")
            found = [p for p in pages if fnmatch(p, item) and p.count("/") == depth]
            found = [p for p in sorted(found) if p not in named]
            named.update(found)
            out += [{Path(p).parent.name: p} if p.endswith("/README.md") else p for p in found]
    return out


def on_page_markdown(markdown, page, **_):
    links.page = page.file.src_uri
    return markdown


IMAGE = r'<img alt="([^"]*)" src="https?://[^"]*" ?/?>'  # on another host
BADGES = rf"<p>(\s*<a [^>]*>{IMAGE}</a>)+\s*</p>\n?"


def on_page_content(html, **_):
    """Removes badges, and replaces other images on other hosts with their alt texts."""
    return re.sub(IMAGE, r"\1", re.sub(BADGES, "", html))
