"""The script form of `python -m gem_cpu.openrlhf`."""

from gem_cpu.openrlhf.__main__ import main

main()
