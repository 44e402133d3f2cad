"""The agents: one file each, found by walking this package for a module-level `AGENT`."""
