"""Agents that look at a container."""
