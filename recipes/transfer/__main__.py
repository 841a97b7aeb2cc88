"""`python -m recipes.transfer`."""

from recipes.command import main
from recipes.transfer.declared import STUDY

if __name__ == "__main__":
    main(STUDY)
