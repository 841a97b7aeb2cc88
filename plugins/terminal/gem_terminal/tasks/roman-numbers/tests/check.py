import random
import shutil
import subprocess

random.seed(11)
shutil.rmtree("/tests")  # what the program under test must not read


def said(*command, given=""):
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, cwd="/app")


ONES = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"]


def roman(number):
    digits = [int(digit) for digit in f"{number:04d}"]
    parts = [
        ONES[digit].translate(str.maketrans("IVX", signs)) for digit, signs in zip(digits, ("M??", "CDM", "XLC", "IVX"))
    ]
    return "".join(parts)


for number in [1, 4, 9, 40, 1994, 3999, *random.sample(range(1, 4000), 6)]:
    assert said("python3", "roman.py", str(number)).stdout.strip() == roman(number)
    assert said("python3", "roman.py", roman(number)).stdout.strip() == str(number)
for wrong in ("0", "4000", "-3", "IIII", "VX", "abc", "IL", ""):
    done = said("python3", "roman.py", wrong)
    assert (done.stdout, done.returncode) == ("", 2), wrong
