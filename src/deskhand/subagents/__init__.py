"""Other agents that take a task: sub-agents."""
