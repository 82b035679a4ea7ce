"""Speech: what is heard in a recording, and words as sound."""
