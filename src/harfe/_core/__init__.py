"""Used by every package: arguments, validation, folds, threads, memory, progress, tables."""
