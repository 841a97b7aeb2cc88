"""`python -m recipes.gamma`."""

from recipes.command import main
from recipes.gamma.declared import STUDY

if __name__ == "__main__":
    main(STUDY)
