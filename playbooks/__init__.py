"""The shipped playbooks: which agents run at which level, and the limits they judge by."""
