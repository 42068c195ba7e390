"""Hard-ridge random feature expansion: accurate, small and readable regression models."""
