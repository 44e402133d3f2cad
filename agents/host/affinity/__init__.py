"""Which CPUs are near each GPU, and which serve its interrupts: the fact, how it is read, and how it is judged."""
