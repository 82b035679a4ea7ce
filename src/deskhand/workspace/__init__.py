"""What tools may touch: folders, labels of files, undo, background processes."""
