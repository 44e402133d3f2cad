"""`python -m gapline` and the `gapline` command."""

from gapline.orchestrator.cli.app import main

if __name__ == "__main__":
    main()
