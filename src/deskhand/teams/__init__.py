"""Teams: sub-agents that work on with a conversation, under names, and share its task list."""
