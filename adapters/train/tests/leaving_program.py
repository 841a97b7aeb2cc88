"""A program that leaves processes behind: `leaving_program.py FOLDER HOW`; see test_cleanup.py."""

import os
import signal
import subprocess
import sys
import time
from multiprocessing import get_context, resource_tracker, shared_memory
from pathlib import Path

from gem_train.cleanup import clean_up_after_this_process

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"
ORPHAN = f"""
import subprocess, sys
print(subprocess.Popen([sys.executable, "-c", "{STUBBORN}"], stdout=subprocess.DEVNULL, start_new_session=True).pid)
"""


def main(folder: Path, how: str) -> None:
    (folder / "scratch").mkdir()
    clean_up_after_this_process(str(folder / "scratch"))
    command = [sys.executable, "-c", STUBBORN]
    pids = [subprocess.Popen(command).pid, subprocess.Popen(command, start_new_session=True).pid]
    # Its parent is gone before anybody could have seen the two together.
    pids.append(int(subprocess.check_output([sys.executable, "-c", ORPHAN])))
    memory = shared_memory.SharedMemory(create=True, size=1 << 16)
    lock = get_context("spawn").Lock()
    # As a kernel that is short of memory might.
    os.kill(resource_tracker._resource_tracker._pid, signal.SIGKILL)  # type: ignore[attr-defined]
    semaphore = lock._semlock.name.replace("/", "sem.")  # type: ignore[attr-defined]
    (folder / "part").write_text(" ".join([memory.name, semaphore, *map(str, pids)]))
    (folder / "part").rename(folder / "left")
    if how == "fails":
        raise SystemExit(3)
    if how == "leaves at once":
        os._exit(0)
    time.sleep(3600)


main(Path(sys.argv[1]), sys.argv[2])
