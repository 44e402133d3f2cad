"""The next boot: kernels, their NVIDIA modules, who makes the nodes, and how these are judged."""
