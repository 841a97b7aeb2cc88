"""Python imports this when it starts, in Ray's workers too."""

from gem_cpu.roll.install import install

install()
