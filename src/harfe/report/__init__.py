"""A report page about a fitted model: one HTML file that needs nothing else.

`summarise` collects what there is to say as plain data, `render` draws it, `write_report` does both
and writes the file. Style, script and frame of the page stand in ``templates``.
"""

from __future__ import annotations

from harfe.report.content.summary import summarise
from harfe.report.page.page import render
from harfe.report.write import write_report

__all__ = ["render", "summarise", "write_report"]
