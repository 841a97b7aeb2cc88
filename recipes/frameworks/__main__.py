"""`python -m recipes.frameworks`."""

from recipes.command import main
from recipes.frameworks.declared import STUDY

if __name__ == "__main__":
    main(STUDY)
