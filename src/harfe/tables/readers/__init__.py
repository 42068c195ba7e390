"""Files of tables, read whole or in blocks of rows."""
