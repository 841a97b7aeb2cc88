"""`python -m recipes.algorithms`."""

from recipes.algorithms.declared import STUDY
from recipes.command import main

if __name__ == "__main__":
    main(STUDY)
