"""`python -m gem_core`: the command line."""

from gem_core.cli import main

if __name__ == "__main__":
    main()
