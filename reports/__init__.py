"""Views of a finished run. Pure: a run in, text out."""
