"""Python imports this when it starts, in Ray's workers and vLLM's processes too."""

from openrlhf_on_cpu.install import install

install()
