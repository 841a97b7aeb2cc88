"""What has to be swapped so that ROLL's own agentic pipeline, unchanged, runs without a GPU.

`settings` has the environment variables, the configuration and the Ray of such a run. The folder `path` is on the
PYTHONPATH of all its processes: `sitecustomize` there has Python swap what `install` names, as soon as it is imported.
"""
