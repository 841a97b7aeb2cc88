"""Python imports this when it starts, in each of Launchpad's processes too."""

from gem_cpu.oat import devices

devices.install()
