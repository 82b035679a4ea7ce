"""Who may do what: pure rules over calls, labels and principals."""
