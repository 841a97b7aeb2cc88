"""`python -m recipes.transfer`."""

from recipes.command import main
from recipes.transfer.declared import STUDY
from recipes.transfer.page import page

if __name__ == "__main__":
    main(STUDY, page)
