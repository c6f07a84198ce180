def made(app, name):
    return f"<figure>{name}</figure>\n"
