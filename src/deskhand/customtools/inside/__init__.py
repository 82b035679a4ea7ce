"""What runs in the sandbox beside a file of tools."""
