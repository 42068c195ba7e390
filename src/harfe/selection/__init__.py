"""Which settings win: folds, one search engine, the choice, the results."""
