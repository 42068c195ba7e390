"""Content of a report, as plain data."""
