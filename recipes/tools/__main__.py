"""`python -m recipes.tools`."""

from recipes.command import main
from recipes.tools.declared import STUDY

if __name__ == "__main__":
    main(STUDY)
