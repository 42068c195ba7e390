"""The subcommands of `harfe`, one module each.

Each module has `add(commands)`, which describes its options using only the standard library, and
`run(options)`, which imports what it needs, so that `harfe --help` answers at once.
"""
