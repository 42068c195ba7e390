"""What every room needs: arguments, validation, folds, threads, memory, progress, tables."""
