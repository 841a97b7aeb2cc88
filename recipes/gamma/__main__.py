"""`python -m recipes.gamma`."""

from recipes.command import main
from recipes.gamma.declared import STUDY
from recipes.gamma.page import page

if __name__ == "__main__":
    main(STUDY, page)
