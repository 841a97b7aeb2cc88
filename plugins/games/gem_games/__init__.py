"""Text games with ids `game:<Family>-v<N>-<variant>`."""
