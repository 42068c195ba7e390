"""Experiments: a study is problems × methods × repetitions, set up in a file, run into a CSV.

    config.toml  ->  results.csv (tracked, a row per repetition)  ->  table.md and figures

`python -m experiments list` lists the studies, `run` computes their results, `show` writes tables
and figures; `paper` does all of this for the paper's tables and figures (`experiments.paper`). The
library does not depend on this folder, and this folder uses only public names of the library.
"""
