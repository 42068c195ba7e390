"""The fitted function as a frozen value: expansion, terms, formula, uncertainty."""
