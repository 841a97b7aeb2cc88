"""Python imports this module when it starts, also in Launchpad's processes."""

from gem_cpu.oat import devices

devices.install()
