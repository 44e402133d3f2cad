"""The PCI Express links from each GPU up to its root port: the fact, how it is read, and how its parts are judged."""
