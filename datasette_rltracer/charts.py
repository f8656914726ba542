def routes():
    return []
