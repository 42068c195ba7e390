"""A page as a list of blocks, and its two forms: Markdown for a repository, HTML for a browser."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the title."""

    level: int
    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph, with `code`, **bold** and [links](address)."""

    text: str


@dataclass(frozen=True)
class TableBlock:
    """A table; cells may have the markup of a paragraph."""

    head: Sequence[str]
    body: Sequence[Sequence[str]]


@dataclass(frozen=True)
class PictureBlock:
    """A picture with its caption and the file with its numbers."""

    path: str
    caption: str
    numbers: str


Block = Heading | Text | TableBlock | PictureBlock


def to_markdown(blocks: Iterable[Block]) -> str:
    """The page for the repository."""
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {block.text}"
    if isinstance(block, Text):
        return block.text
    if isinstance(block, PictureBlock):
        return f"![{block.caption}]({block.path})\n\n{block.caption} [Numbers]({block.numbers})"
    lines = [block.head, ["---"] * len(block.head), *block.body]
    return "\n".join("| " + " | ".join(_in_pipes(cell) for cell in line) + " |" for line in lines)


def _in_pipes(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")


def to_html(blocks: Sequence[Block]) -> str:
    """The page for a browser: one file that needs only its pictures, no script, no network."""
    title = next((b.text for b in blocks if isinstance(b, Heading)), "")
    body = "\n".join(_html(block) for block in blocks)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{_inline(block.text)}</h{block.level}>"
    if isinstance(block, Text):
        return f"<p>{_inline(block.text)}</p>"
    if isinstance(block, PictureBlock):
        caption = f'{_inline(block.caption)} <a href="{html.escape(block.numbers)}">Numbers</a>'
        picture = f'<img src="{html.escape(block.path)}" alt="{html.escape(block.caption)}">'
        return f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"
    head = "".join(f"<th>{_inline(cell)}</th>" for cell in block.head)
    body = "\n".join(
        "<tr>" + "".join(f"<td{_kind(cell)}>{_inline(cell)}</td>" for cell in line) + "</tr>"
        for line in block.body
    )
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>'
        "</table></div>"
    )


def _kind(cell: str) -> str:
    """The class that colours a verdict, by the word the cell ends with."""
    for word in ("reproduced", "better", "worse"):
        if cell.endswith(word):
            return f' class="{word}"'
    return ""


def _inline(text: str) -> str:
    escaped = html.escape(text, quote=False)
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
    escaped = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escaped)
    return re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", r'<a href="\2">\1</a>', escaped)


_STYLE = """\
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif;
  color: #1b1b1b; background: #fff; }
h1, h2, h3 { line-height: 1.2; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #ddd; padding-bottom: 0.3rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; margin: 0.5rem 0 1rem; }
th, td { border: 1px solid #ddd; padding: 0.25rem 0.5rem; text-align: left; vertical-align: top; }
th { background: #f4f4f4; }
td.reproduced { background: #e3f4e3; }
td.better { background: #e2eefb; }
td.worse { background: #fbe6e2; }
code { background: #f4f4f4; padding: 0 0.2em; }
figure { margin: 1rem 0; }
img { max-width: 100%; }
figcaption { font-size: 0.9rem; color: #444; }
"""
