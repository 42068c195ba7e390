"""The subcommands of `harfe`, one module each.

A module has `add(commands)`, which describes its options with the standard library alone, and
`run(options)`, which imports what the work needs, so that `harfe --help` answers at once.
"""
