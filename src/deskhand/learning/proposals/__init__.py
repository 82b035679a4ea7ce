"""Skills that an agent proposes: kept, tried, and decided on by a person."""
