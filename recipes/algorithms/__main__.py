"""`python -m recipes.algorithms`."""

from recipes.algorithms.declared import STUDY
from recipes.algorithms.page import page
from recipes.command import main

if __name__ == "__main__":
    main(STUDY, page)
