"""Code mode: a Python script calls tools, and no model is asked in between."""
