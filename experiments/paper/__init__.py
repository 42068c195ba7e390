"""The paper's tables, figures and claims: run, judged and put on one page.

    table1.toml .. figure5.toml  ->  results/*.csv  ->  verdicts against paper.toml, claims.toml  ->
    results/README.md and results/paper.html, with figures and their numbers

Each `.toml` file here is a study of the runner (`experiments.config`), except `paper.toml`, which
has the published numbers, and `claims.toml`, which has the claims of the text. `run.py` defines the
order and the folders, `verdicts.py` the rule, `claims.py` how a claim is checked; `figures.py`
writes the figures, `page.py` the page.
"""
