"""Playbooks: which agents run at which level, and the limits they judge by, each with its origin."""
