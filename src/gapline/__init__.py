"""Gapline: how far a GPU inference machine is from its ceiling, and what holds it back."""

__version__ = "0.1.0.dev0"
