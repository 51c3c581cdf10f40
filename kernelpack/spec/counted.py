"""How many there are of something, for people."""


def counted(count: int, one: str, more: str = "") -> str:
    """`1 run`, `2 runs`; `more` is the word for several where it is not `one` with an s."""
    return f"{count} {one if count == 1 else more or f'{one}s'}"
