"""The agent: a pure decision, a short loop, and what the model is shown."""
