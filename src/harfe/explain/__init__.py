"""Which inputs and interactions matter in a fitted function, as plain data."""
