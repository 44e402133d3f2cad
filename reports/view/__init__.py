"""A run as a page shows it: frozen values, computed once, in the order in which they are read.

Nothing here knows HTML, and nothing here adds to what the run says: what was not measured is called unmeasured.
"""
