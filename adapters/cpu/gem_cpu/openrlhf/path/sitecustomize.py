"""Python imports this when it starts, in Ray's workers and vLLM's processes too."""

from gem_cpu.openrlhf.install import install

install()
