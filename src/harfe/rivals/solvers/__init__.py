"""Solvers shared by rivals."""
