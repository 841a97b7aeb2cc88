import shutil
import subprocess
from pathlib import Path

shutil.rmtree("/tests")  # what the program under test must not read


def greeted(*names, cwd="/"):
    return subprocess.run(["/app/bin/greet", *names], capture_output=True, text=True, timeout=120, cwd=cwd).stdout


assert Path("/app/etc/greeting").read_text() == "Hello\n"
assert Path("/app/bin/greet").read_text().startswith(("#!/bin/sh", "#!/bin/bash", "#!/usr/bin/env"))
assert greeted("Bea") == "Hello, Bea!\n"
assert greeted("Cy", "Day", cwd="/tmp") == "Hello, Cy Day!\n"
Path("/app/etc/greeting").write_text("Good morning\n")
assert greeted("Eve") == "Good morning, Eve!\n"
