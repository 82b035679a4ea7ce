"""The desktop of this machine: its windows as trees of elements, and acting on them."""
