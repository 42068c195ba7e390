"""What a report looks like: plain data to one HTML page."""
