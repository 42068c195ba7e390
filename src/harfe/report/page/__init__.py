"""Rendering of a report: from plain data to one HTML page."""
