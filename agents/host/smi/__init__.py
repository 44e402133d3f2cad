"""What `nvidia-smi -q -x` tells of each GPU: the document, the fact, and the judgements on it."""
