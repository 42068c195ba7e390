"""Sparse random features: a law draws a pool, a pool computes values."""
