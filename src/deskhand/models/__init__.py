"""Language models: what a call is, the wires that carry it, and the catalogue of providers."""
