"""Eyes and hands: what a screen or a page shows as a tree of elements, and acting on them."""
