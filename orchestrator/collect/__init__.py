"""From sources to captures: the only part that knows about time-outs, retries and what a shell can do."""
