"""`python -m bertology` is the command `bertology`."""

from bertology.cli.main import main

if __name__ == "__main__":
    main()
