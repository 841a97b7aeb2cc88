def rate():
    return 0.25
