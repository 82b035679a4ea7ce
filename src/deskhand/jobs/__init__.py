"""Jobs: what is due becomes a message to an agent, once, whatever dies in between."""
