"""What runs in the sandbox beside a script: its tools. The standard library alone."""
