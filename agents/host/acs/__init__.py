"""Access Control Services on the bridges above GPUs: the fact, how it is read, and how it is judged."""
