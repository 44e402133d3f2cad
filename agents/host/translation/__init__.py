"""Whether an IOMMU translates the addresses that GPUs use: the fact, how it is read, and how it is judged."""
