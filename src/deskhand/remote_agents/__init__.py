"""Agents of other programs that ours may give tasks to, as the settings name them."""
