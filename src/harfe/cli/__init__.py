"""The `harfe` command line: parsing, commands, and errors as one sentence each."""
