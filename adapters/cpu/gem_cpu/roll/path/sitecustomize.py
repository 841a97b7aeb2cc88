"""Python imports this module when it starts, also in Ray's workers."""

from gem_cpu.roll.install import install

install()
