"""Experiments: a study is problems × methods × repetitions, told by a file, run into a CSV.

    config.toml  ->  results.csv (tracked, a row per repetition)  ->  table.md and figures

`python -m experiments list` names the studies, `run` fills their results, `show` draws them;
`paper` does all that for the studies of the paper's tables and figures (`experiments.paper`). The
library does not know this folder; this folder uses the library's public names only.
"""
