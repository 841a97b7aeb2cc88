from pathlib import Path

BEFORE = "# Settings of the kiosk\nCOLOR=blue\nTITLE=Reading room\nDEBUG=true\n\n# Times\nOPEN=9\nCLOSE=17\n"
after = BEFORE.replace("=blue", "=green").replace("=17", "=18").replace("DEBUG=true\n", "") + "LANG=en\n"
assert Path("/app/kiosk.env").read_text() == after
assert Path("/app/kiosk.env.bak").read_text() == BEFORE
