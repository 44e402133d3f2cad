"""Charts as numbers: where things are to be drawn. The templates draw them, so no text becomes markup here."""
