"""Every data set of the installed reasoning-gym as `rg:<name>`: https://github.com/open-thought/reasoning-gym."""
