"""Agents that set a container against its host."""
