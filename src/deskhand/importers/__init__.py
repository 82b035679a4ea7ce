"""Moving in: what another system leaves behind is read, told, and taken over once."""
