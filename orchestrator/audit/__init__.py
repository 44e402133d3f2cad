"""One audit as it runs: hosts side by side, agents judged as soon as what they need has arrived."""
