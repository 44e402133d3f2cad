"""The frequency of a host's CPUs: the fact, how it is read, and how its parts are judged."""
