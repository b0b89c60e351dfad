"""``python -m degem`` is the command ``degem``."""

from degem.cli import main

if __name__ == "__main__":
    main()
