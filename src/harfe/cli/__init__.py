"""The `harfe` command line: what is typed is parsed, errors become one sentence each."""
