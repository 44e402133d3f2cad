"""Agents that look at a host."""
