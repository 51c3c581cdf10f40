"""A progress that remembers, and can be interrupted."""


class Watching:
    """What was reported; raises KeyboardInterrupt at outcome number `until`."""

    def __init__(self, until=None):
        self.total, self.seconds, self.told, self._until = 0, 0, [], until

    def begin(self, total, seconds=0):
        self.total, self.seconds = total, seconds

    def tell(self, outcome):
        self.told.append(outcome)
        if len(self.told) == self._until:
            raise KeyboardInterrupt
