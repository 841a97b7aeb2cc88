"""TextArena's one-player games as `textarena:<id>`: https://github.com/LeonGuertler/TextArena."""
