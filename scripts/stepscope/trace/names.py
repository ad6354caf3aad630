"""The names of a trace's events, each kept once."""


class Names:
    """Codes for names: events refer to `list` by position."""

    def __init__(self) -> None:
        self.list: list[str] = []
        self._codes: dict[str, int] = {}

    def code(self, name: str) -> int:
        """Position of a name, which is added if it is new."""
        code = self._codes.get(name)
        if code is None:
            code = self._codes[name] = len(self.list)
            self.list.append(name)
        return code

    def operator(self, text: str) -> tuple[int, int]:
        """(code, sequence number or -1) of a range's text.

        PyTorch names its operators as `aten::mm, seq = 12, op_id = 34, sizes = [[2, 3], [3, 4]]`
        (torch.autograd.profiler.emit_nvtx): each text is another, so the name is what stands before.
        """
        name, found, rest = text.partition(", seq = ")
        if not found:
            return self.code(text.partition(", op_id = ")[0]), -1
        digits = rest.partition(",")[0]
        return self.code(name), int(digits) if digits.isdecimal() else -1
