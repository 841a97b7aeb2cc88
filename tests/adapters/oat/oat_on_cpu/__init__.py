"""The CPU as Oat's device. What is swapped, and why, is here and nowhere in the adapter.

`devices` is for every run on a CPU. `engine` and `transport` are for the lighter form alone: real Oat classes and
DeepSpeed, stand-ins for vLLM, Launchpad and Plasma, which do not exist for the Python and torch of CI.
"""
