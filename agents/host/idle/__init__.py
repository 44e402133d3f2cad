"""The idle states of a host's CPUs: the fact, how it is read, and how it is judged."""
