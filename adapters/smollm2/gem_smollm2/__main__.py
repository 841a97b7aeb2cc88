"""Print the folder of the model, which is made if it is not there."""

import sys

from gem_core.errors import GemError
from gem_smollm2 import smollm2_folder

try:
    print(smollm2_folder())
except GemError as error:
    sys.exit(f"Error: {error}")
