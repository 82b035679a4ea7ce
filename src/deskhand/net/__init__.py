"""The one guarded HTTP client for addresses that a model, a stranger or a skill chose."""
