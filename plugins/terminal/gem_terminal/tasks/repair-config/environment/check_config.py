"""Says what is wrong with a configuration: python3 check_config.py FILE"""

import configparser
import sys

RULES = {
    ("server", "port"): lambda text: text.isdecimal() and 1024 <= int(text) <= 65535,
    ("server", "workers"): lambda text: text.isdecimal() and 1 <= int(text) <= 16,
    ("log", "level"): lambda text: text in ("debug", "info", "warning", "error"),
    ("log", "file"): lambda text: text.startswith("/var/log/"),
    ("cache", "enabled"): lambda text: text in ("yes", "no"),
}

config = configparser.ConfigParser()
config.read(sys.argv[1])
problems = 0
for (section, key), rule in RULES.items():
    value = config.get(section, key, fallback=None)
    if value is None or not rule(value):
        print(f"[{section}] {key}: {value!r} is not allowed")
        problems += 1
sys.exit(1 if problems else 0)
