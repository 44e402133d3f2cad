"""The inference engine as `/proc` and its own log show it, in a container or on the bare host."""
