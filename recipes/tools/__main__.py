"""`python -m recipes.tools`."""

from recipes.command import main
from recipes.tools.declared import STUDY
from recipes.tools.page import page

if __name__ == "__main__":
    main(STUDY, page)
