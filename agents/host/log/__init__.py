"""The kernel's log of this boot: what is taken from it, what it says, and the judgements on that."""
