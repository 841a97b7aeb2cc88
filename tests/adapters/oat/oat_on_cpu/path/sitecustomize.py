"""Python imports this when it starts, in each of Launchpad's processes too."""

from oat_on_cpu import devices

devices.install()
