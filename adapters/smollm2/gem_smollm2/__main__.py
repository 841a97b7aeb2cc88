"""Print the folder of the model, which is made if it is not there."""

import contextlib
import sys

from gem_core.errors import GemError
from gem_smollm2 import smollm2_folder

try:
    with contextlib.redirect_stdout(sys.stderr):  # a shell takes the folder from stdout
        folder = smollm2_folder()
except GemError as error:
    sys.exit(f"Error: {error}")
print(folder)
