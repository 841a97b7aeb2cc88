"""`python -m recipes.smollm2`."""

from recipes.command import main
from recipes.smollm2.declared import STUDY
from recipes.smollm2.page import page

if __name__ == "__main__":
    main(STUDY, page)
