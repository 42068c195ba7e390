"""The law of the features learned from data: likelihood, reference, matching, training."""
