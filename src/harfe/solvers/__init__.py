"""The sparse ridge problem, where its features are kept, and the algorithms that minimise it."""
