"""Readers of table files, whole or in blocks of rows."""
