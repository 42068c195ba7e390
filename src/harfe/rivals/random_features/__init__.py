"""Rivals on sparse random features."""
