"""Python imports this when it starts, in Ray's workers too."""

from roll_on_cpu.install import install

install()
