"""What runs in the sandbox beside such a program: the functions that it may use. The standard
library alone."""
