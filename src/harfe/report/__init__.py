"""A report page about a fitted model: one self-contained HTML file.

`summarise` collects the content as plain data, `render` turns it into HTML, and `write_report` does
both and writes the file. Markup, style and script of the page are in ``page/templates``.
"""

from __future__ import annotations

from harfe.report.content.summary import summarise
from harfe.report.page.page import render
from harfe.report.write import write_report

__all__ = ["render", "summarise", "write_report"]
