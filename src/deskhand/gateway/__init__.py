"""The way of a message: door, dispatch, outbox, drafts, and the live feed."""
