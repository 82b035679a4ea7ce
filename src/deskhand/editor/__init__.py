"""Deskhand in editors, by the Agent Client Protocol."""
