"""What people expect of such a product, and how each of it is reached."""

import pictures  # noqa: F401 -- it makes the tests importable
