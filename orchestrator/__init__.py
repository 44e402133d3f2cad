"""Everything between the inventory and a finished run; the domain knowledge itself is in `gapline.agents`."""
