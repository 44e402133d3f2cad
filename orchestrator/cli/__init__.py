"""The command line, and the only place that knows every other part."""
