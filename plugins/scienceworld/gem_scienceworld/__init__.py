"""ScienceWorld's tasks as `scienceworld:<task>-v0`: https://github.com/allenai/ScienceWorld."""
