"""Running a search: plans of tasks, threads, time limits, progress, resumption."""
