"""What `python -m gem_cpu.verl` does, as a script."""

from gem_cpu.verl.__main__ import main

main()
