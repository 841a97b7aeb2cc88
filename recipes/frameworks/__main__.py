"""`python -m recipes.frameworks`."""

from recipes.command import main
from recipes.frameworks.declared import STUDY
from recipes.frameworks.page import page

if __name__ == "__main__":
    main(STUDY, page)
