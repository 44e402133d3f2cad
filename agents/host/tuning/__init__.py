"""Services that tune a host behind everybody's back: the fact, how it is read, and how it is judged."""
