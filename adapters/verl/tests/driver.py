"""The script form of `python -m gem_cpu.verl`."""

from gem_cpu.verl.__main__ import main

main()
