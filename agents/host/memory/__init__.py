"""How a host's memory is fitted and what the kernel is told to do with it."""
