"""One short program for a request: rehearsed on a copy of the workspace, and then done as one
change."""
