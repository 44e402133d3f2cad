"""PCI Express errors on the way to the GPUs: the fact, how it is read, and how it is judged."""
