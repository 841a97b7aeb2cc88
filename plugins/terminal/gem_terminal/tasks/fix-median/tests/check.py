import random
import shutil
import subprocess

random.seed(11)
shutil.rmtree("/tests")  # what the program under test must not read


def said(*command, given=""):
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, cwd="/app")


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return str(values[middle]) if len(values) % 2 else f"{(values[middle - 1] + values[middle]) / 2:.1f}"


assert said("python3", "median.py").stdout.strip() == "none"
for size in (1, 2, 3, 8, 9, 10, 31):
    values = [random.randrange(-500, 1500) for _ in range(size)]
    done = said("python3", "median.py", given="".join(f"{one}\n" for one in values))
    assert done.stdout.strip() == median(values)
