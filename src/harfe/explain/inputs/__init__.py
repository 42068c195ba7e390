"""The distribution of the inputs, and the summary of it that a fit keeps."""
