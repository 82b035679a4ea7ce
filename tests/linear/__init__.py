"""Whatever sees text from outside takes time in proportion to it."""
