"""The distribution of the inputs, and what a fit keeps of it."""
