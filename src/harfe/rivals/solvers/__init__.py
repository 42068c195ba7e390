"""Minimisers that rivals share."""
