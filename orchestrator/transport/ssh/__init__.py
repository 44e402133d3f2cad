"""The SSH route: one connection per host, made as the user's own `ssh` would make it, with host keys always checked.

Start at `dialer.Dialer`. asyncssh is imported in this package and nowhere else.
"""
