"""The durable truth: the log, what is owed, and the blobs."""
