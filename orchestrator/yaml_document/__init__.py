"""Files that people write: strict YAML 1.2 in which every node knows its line and column."""
