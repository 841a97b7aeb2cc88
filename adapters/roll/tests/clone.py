"""Prepares the clone of ROLL that `ROLL_HOME` names; import this module before any module of ROLL."""

from __future__ import annotations

import os
import tempfile

from gem_cpu import roll as cpu

HOME = os.environ.get("ROLL_HOME")

WITHOUT = (
    "needs ROLL: git clone https://github.com/alibaba/ROLL /somewhere && "
    "git -C /somewhere checkout 8eb27cc2dc34c4d1310b169d9b86d339004d811a && export ROLL_HOME=/somewhere"
)

if HOME:
    cpu.prepare()
    # By default ROLL writes its logs to the working directory.
    logs = tempfile.TemporaryDirectory(prefix="roll", ignore_cleanup_errors=True)
    os.environ["ROLL_LOG_DIR"] = logs.name
