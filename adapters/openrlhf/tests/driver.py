"""What `python -m gem_cpu.openrlhf` does, as a script."""

from gem_cpu.openrlhf.__main__ import main

main()
