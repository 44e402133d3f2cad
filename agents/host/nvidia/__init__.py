"""The NVIDIA kernel driver of a host: its fact, how that is read, and how its parts are judged."""
