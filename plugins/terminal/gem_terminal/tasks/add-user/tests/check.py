import grp
import pwd
from pathlib import Path

ada, readers = pwd.getpwnam("ada"), grp.getgrnam("readers")
assert tuple(ada) == ("ada", "x", 1001, 2001, "Ada King", "/home/ada", "/bin/bash")
assert (readers.gr_gid, readers.gr_passwd) == (2001, "x")
assert pwd.getpwuid(0).pw_name == "root" and pwd.getpwnam("nobody").pw_uid == 65534
assert len(pwd.getpwall()) == 3 and len(grp.getgrall()) == 3
profile = Path("/home/ada/.profile")
assert profile.is_file() and profile.read_bytes() == b""
