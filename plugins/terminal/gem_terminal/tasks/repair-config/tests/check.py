import configparser
from pathlib import Path

text = Path("/app/server.ini").read_text()
config = configparser.ConfigParser()
config.read_string(text)
assert {name: dict(config[name]) for name in config.sections()} == {
    "server": {"port": "8080", "workers": "4", "name": "reading-room"},
    "log": {"level": "info", "file": "/var/log/room.log", "keep_days": "14"},
    "cache": {"enabled": "yes", "size": "250"},
}
assert "# The server of the reading room" in text.splitlines()
assert (
    Path("/app/check_config.py").read_text()
    == '"""Says what is wrong with a configuration: python3 check_config.py FILE"""\n\nimport configparser\nimport sys\n\nRULES = {\n    ("server", "port"): lambda text: text.isdecimal() and 1024 <= int(text) <= 65535,\n    ("server", "workers"): lambda text: text.isdecimal() and 1 <= int(text) <= 16,\n    ("log", "level"): lambda text: text in ("debug", "info", "warning", "error"),\n    ("log", "file"): lambda text: text.startswith("/var/log/"),\n    ("cache", "enabled"): lambda text: text in ("yes", "no"),\n}\n\nconfig = configparser.ConfigParser()\nconfig.read(sys.argv[1])\nproblems = 0\nfor (section, key), rule in RULES.items():\n    value = config.get(section, key, fallback=None)\n    if value is None or not rule(value):\n        print(f"[{section}] {key}: {value!r} is not allowed")\n        problems += 1\nsys.exit(1 if problems else 0)\n'
)
