"""The paper's tables, figures and sentences: run, judged and put on one page.

    table1.toml .. figure5.toml  ->  results/*.csv  ->  verdicts against paper.toml, claims.toml  ->
    results/README.md and results/paper.html, with figures and their numbers

Each `.toml` beside this file is a study of the runner (`experiments.config`), but for `paper.toml`,
which holds what the paper prints, and `claims.toml`, which holds what it says. `run.py` knows the
order and the folders; `verdicts.py` the rule; `claims.py` how a sentence is checked; `figures.py`
draws; `page.py` puts all on a page.
"""
