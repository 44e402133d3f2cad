"""NUMA nodes: which CPUs and how much memory each has, and how that is judged."""
