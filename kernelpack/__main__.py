"""`python -m kernelpack`: the command line."""

from kernelpack.cli.main import main

if __name__ == "__main__":
    main()
