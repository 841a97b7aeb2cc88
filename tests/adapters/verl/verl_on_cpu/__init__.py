"""What has to be swapped so that verl's own trainer, unchanged, runs without a GPU.

`settings` has the environment variables and the configuration overrides of such a run. verl imports `install` in each
of its processes, because `VERL_USE_EXTERNAL_MODULES` names it.
"""
