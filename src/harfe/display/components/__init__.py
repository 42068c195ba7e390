"""Components of a fitted function as curves and maps."""
