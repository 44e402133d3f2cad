"""The hosts to audit: the fleet file, the command line and ~/.ssh/config, resolved into frozen values."""
