"""What every room needs: arguments, validation, folds, threads and memory, progress, tables of results."""
