"""One module per command; each brings `command`."""
