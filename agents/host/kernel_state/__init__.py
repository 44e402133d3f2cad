"""The kernel of a host: the fact, how it is read, and how its parts are judged."""
