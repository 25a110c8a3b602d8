"""A shop that books things and takes them back."""

import weft


class Shop:
    """An app whose only trade is to book things and take them back, and the ledger of it."""

    def __init__(self) -> None:
        self.app = weft.App("memory://")
        self.ledger: list[str] = []
        self.keys: list[str] = []
        self.refuses = ""
        self.book = self.app.step(name="book", retries=0)(self._book)
        self.undo_name = self.book.undo(self.unbook).name
        self.fail = self.app.step(name="fail", retries=0)(self._fail)

    async def _book(self, item: str) -> str:
        self.ledger.append(f"+{item}")
        return f"ticket {item}"

    async def unbook(self, item: str, result: str) -> None:
        self.keys.append(weft.task().key)
        if item == self.refuses:
            raise weft.Critical("no way back")
        self.ledger.append(f"-{item} by {result}")

    async def _fail(self) -> None:
        raise OSError("no")


def taken_back(*items: str) -> list[str]:
    return [f"-{item} by ticket {item}" for item in items]
