"""What a host says about itself before any agent runs: what it is, and which of its containers use a GPU."""
