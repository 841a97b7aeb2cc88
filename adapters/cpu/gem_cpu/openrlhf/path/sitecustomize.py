"""Python imports this module when it starts, also in Ray's workers and vLLM's processes."""

from gem_cpu.openrlhf.install import install

install()
