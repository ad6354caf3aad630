"""Reads a pickle of plain data, and keeps the events of a memory snapshot as columns of numbers.

A pickle is a program for a small stack machine (https://docs.python.org/3/library/pickletools.html lists its opcodes).
This machine knows only numbers, text, lists, tuples and dicts with text as keys, so a hostile file finds nothing to
call. Every object costs the file at least a byte (at most some 90 bytes of memory) and nothing recurses, so neither
nesting nor sharing nor a declared length can take much memory.

A snapshot is millions of events, each a dict with the same keys. After the first one, a regular expression made from
its keys reads the next ones, a whole event at once, straight into the columns; what it does not recognise (an event
that mentions a new source line, say) goes through the stack machine.

Why not `pickle.Unpickler` with a `find_class` that always raises? It cannot run code either, and would be 300 lines
less. Both were compared (Python 3.11, `benchmarks/snapshot_scale.py --compare`; making the columns measured beside it):

- 4.0 million events with 90 frames each, 0.93 GB: this reader takes 18 s and at most 1.3 GB, of which 0.9 GB are pages
  of the file that the system can drop; the Unpickler 6 s, and about 13 s more to make the columns, and 3.0 GB.
- 8.0 million events with one frame each, 0.67 GB: 32 s and 1.4 GB here, 10 + 13 s and 4.1 GB there.
- Small hostile files reach its C code, where no hook can refuse them. As a dict's key, tuples that share tuples (370
  bytes) are hashed without end, even against Ctrl-C, deeply nested ones (0.3 MB) crash the process, and 40,000 integers
  whose hashes collide (0.5 MB) take 13 s; one large number in the memo (9 bytes) asks for 34 GB. One clear line for
  them would need a process of its own with limits of time and memory.

So the Unpickler takes 0.7 to 1.1 times as long and two to three times the memory, and is not safe without more code.
"""

import re
import struct

from stepscope.snapshot import SnapshotError
from stepscope.snapshot.events import Columns, Rows, code_of
from stepscope.snapshot.layouts import (
    LARGEST_INTEGER,
    MOST_KEYS,
    MOST_LAYOUTS,
    MOST_TEXTS,
    REFERENCE,
    Layout,
    integer,
    layout,
)

_CONSTANTS = {"N": None, "\x88": True, "\x89": False, ")": ()}
_TUPLES = {"\x85": 1, "\x86": 2, "\x87": 3}
# Opcode → (bytes of the length, whether it is text).
_TEXT_WIDTH = {
    "\x8c": (1, True),
    "X": (4, True),
    "\x8d": (8, True),
    "C": (1, False),
    "B": (4, False),
    "\x8e": (8, False),
}
_CALLS = {"R": "REDUCE", "b": "BUILD", "o": "OBJ", "\x81": "NEWOBJ", "\x92": "NEWOBJ_EX"}
_MOST_PLACES = 4  # numbers under which a text is looked for
_OLD = "ILFSVpgld0"  # of protocols 0 and 1: PyTorch has never written snapshots in them


class Reader:
    """One pass over a pickle: `load()` gives its object, in which runs of events are `Rows` of `columns`."""

    def __init__(self, data) -> None:
        """data: bytes or a memory map."""
        self.data = data
        self.columns = Columns()
        self._memo: list = []
        self._places: dict[str, list[int]] = {}  # numbers of a text
        self._layouts: dict[tuple[str, ...], Layout | None] = {}
        self._ready: list[Layout] = []
        self._texts: dict[tuple[str, ...], dict[str, set[str]]] = {}
        self._lists: dict[bytes, list] = {}  # stacks by the references that they are written as

    def load(self) -> object:
        """Raises SnapshotError, with what is wrong and no file's name, for all but plain data."""
        self._at = 0
        try:
            if self.data[:1] != b"\x80":
                raise SnapshotError("this is not a pickle, or one of protocol 0 or 1; give a snapshot of PyTorch")
            return self._run()
        except (IndexError, struct.error, TypeError, OverflowError):
            raise SnapshotError(
                f"the pickle is cut off or damaged at byte {self._at} of {len(self.data)}; record the snapshot again"
            ) from None

    def _run(self) -> object:
        data, memo, at = self.data, self._memo, 0
        stack: list = []
        marks: list[int] = []
        from_bytes = int.from_bytes
        while True:
            opcode = chr(data[at])
            self._at = at
            at += 1
            if opcode == "h":  # BINGET
                stack.append(memo[data[at]])
                at += 1
            elif opcode == "j":  # LONG_BINGET
                stack.append(memo[from_bytes(data[at : at + 4], "little")])
                at += 4
            elif opcode == "}":  # EMPTY_DICT
                rows = self._events(at - 1)
                if rows is None:
                    stack.append({})
                else:
                    stack.append(rows)
                    at = self._at
            elif opcode == "\x94":  # MEMOIZE
                self._number(stack[-1], len(memo))
            elif opcode == "(":  # MARK
                marks.append(len(stack))
            elif opcode == "u":  # SETITEMS
                mark = marks.pop()
                items = stack[mark:]
                del stack[mark:]
                self._set(stack[-1], items)
            elif opcode == "e":  # APPENDS
                mark = marks.pop()
                items = stack[mark:]
                del stack[mark:]
                _list(stack[-1]).extend(items)
            elif opcode == "]":  # EMPTY_LIST
                stack.append([])
            elif opcode == "K":  # BININT1
                stack.append(data[at])
                at += 1
            elif opcode == "M":  # BININT2
                stack.append(from_bytes(data[at : at + 2], "little"))
                at += 2
            elif opcode == "J":  # BININT
                stack.append(from_bytes(data[at : at + 4], "little", signed=True))
                at += 4
            elif opcode == "\x8a" or opcode == "\x8b":  # LONG1, LONG4
                width = 1 if opcode == "\x8a" else 4
                size = from_bytes(data[at : at + width], "little")
                if size > LARGEST_INTEGER:
                    raise SnapshotError(f"a number of {size} bytes is nothing that PyTorch writes; record it again")
                at += width
                stack.append(from_bytes(data[at : at + size], "little", signed=True))
                at += size
            elif opcode in _TEXT_WIDTH:
                width, is_text = _TEXT_WIDTH[opcode]
                size = from_bytes(data[at : at + width], "little")
                at += width
                if size > len(data) - at:
                    raise SnapshotError(
                        f"a text is said to be {size} bytes long, but the file has only {len(data) - at} more; "
                        "record the snapshot again"
                    )
                raw = data[at : at + size]
                stack.append(str(raw, "utf-8", "replace") if is_text else raw)
                at += size
            elif opcode == "a":  # APPEND
                item = stack.pop()
                _list(stack[-1]).append(item)
            elif opcode == "s":  # SETITEM
                items = stack[-2:]
                del stack[-2:]
                self._set(stack[-1], items)
            elif opcode == "q":  # BINPUT
                self._number(stack[-1], data[at])
                at += 1
            elif opcode == "r":  # LONG_BINPUT
                self._number(stack[-1], from_bytes(data[at : at + 4], "little"))
                at += 4
            elif opcode in _CONSTANTS:
                stack.append(_CONSTANTS[opcode])
            elif opcode in _TUPLES:
                size = _TUPLES[opcode]
                if size > len(stack):
                    raise IndexError
                items = tuple(stack[-size:])
                del stack[-size:]
                stack.append(items)
            elif opcode == "t":  # TUPLE
                mark = marks.pop()
                items = tuple(stack[mark:])
                del stack[mark:]
                stack.append(items)
            elif opcode == "G":  # BINFLOAT
                stack.append(struct.unpack(">d", data[at : at + 8])[0])
                at += 8
            elif opcode == "\x95":  # FRAME: only how the file is best read
                at += 8
            elif opcode == "\x80":  # PROTO
                if data[at] > 5:
                    raise SnapshotError(f"the pickle has protocol {data[at]}, and 5 is the newest known; save it again")
                at += 1
            elif opcode == ".":  # STOP
                return stack.pop()
            else:
                raise SnapshotError(self._refusal(opcode, at, stack))

    def _number(self, value: object, place: int) -> None:
        """Keep a value in the memo. Picklers count from 0; a gap would let a small file ask for a huge table."""
        memo = self._memo
        if type(value) is str:
            places = self._places.setdefault(value, [])
            if len(places) < _MOST_PLACES:
                places.append(place)
        if place == len(memo):
            memo.append(value)
        else:
            memo[place] = value

    def _set(self, target: object, items: list) -> None:
        if type(target) is not dict:
            raise TypeError
        keys = items[::2]
        if len(items) % 2 or any(type(key) is not str for key in keys):
            raise SnapshotError("a dict with a key that is not text is nothing that PyTorch writes; record it again")
        target.update(zip(keys, items[1::2], strict=True))
        if "action" in target and "size" in target and len(target) <= MOST_KEYS:
            self._learn(target)

    def _refusal(self, opcode: str, at: int, stack: list) -> str:
        """Why a pickle with this opcode is refused: what it wanted to do."""
        only = "only plain data is read, and nothing in the file was run"
        if opcode in "ci":  # GLOBAL, INST: two lines
            lines = bytes(self.data[at : at + 200]).split(b"\n")[:2]
            wanted = ".".join(str(line, "utf-8", "replace") for line in lines)
            return f"the pickle wants to import {wanted!r}; {only}"
        if opcode == "\x93":  # STACK_GLOBAL
            wanted = ".".join(item[:100] for item in stack[-2:] if type(item) is str)
            return f"the pickle wants to import {wanted!r}; {only}"
        if opcode in _CALLS:
            return f"the pickle wants to make an object by a call ({_CALLS[opcode]}); {only}"
        if opcode in "\x82\x83\x84":
            return f"the pickle wants an object by its extension code (EXT); {only}"
        if opcode in "PQ":
            return f"the pickle wants an object by a persistent id; {only}"
        if opcode in _OLD:
            return "the pickle has opcodes of protocol 0; save it again with protocol 4"
        return f"byte {at - 1} of the pickle is {ord(opcode):#04x}, which is not plain data; record the snapshot again"

    def _learn(self, event: dict) -> None:
        """Make the regular expression for events with the same keys as this one."""
        keys = tuple(event)
        texts = self._texts.setdefault(keys, {})
        known = keys in self._layouts
        changed = False
        for key, value in event.items():
            if type(value) is str and key != "action":
                seen = texts.setdefault(key, set())
                if value not in seen and len(seen) < MOST_TEXTS:
                    seen.add(value)
                    changed = True
        if (known and not changed) or (not known and len(self._layouts) >= MOST_LAYOUTS):
            return
        self._layouts[keys] = layout(event, texts, self._places)
        self._ready = [each for each in self._layouts.values() if each]

    def _events(self, at: int) -> Rows | None:
        """Read the events from byte `at` on, as many as are of one layout; self._at is then the byte behind them."""
        for chosen in self._ready:
            if chosen.match(self.data, at):
                return self._read(chosen, at)
        return None

    def _read(self, chosen: Layout, at: int) -> Rows:
        data, memo, columns = self.data, self._memo, self.columns
        match, values, memoized = chosen.match, chosen.values, chosen.memoized
        add_action, add_address = columns.action.append, columns.address.append
        add_size, add_time, add_stack = columns.size.append, columns.time.append, columns.stack.append
        start = len(columns)
        while (found := match(data, at)) is not None:
            tokens = found.group(*values)
            add_action(self._action(tokens[0]))
            add_address(integer(tokens[1]))
            add_size(integer(tokens[2]))
            add_time(integer(tokens[3]) if chosen.timed else 0)
            memo.append(None)  # the event, to which nothing refers
            for group in memoized:
                if found[group] is not None:
                    memo.append(None)
            add_stack(self._stack(tokens[-1]) if chosen.framed else -1)
            at = found.end()
        self._at = at
        return Rows(start, len(columns))

    def _action(self, token: bytes) -> int:
        return code_of(self._referred(token))

    def _stack(self, token: bytes) -> int:
        """The number of a stack, written as one reference or as a new list of them."""
        if token[0] != _LIST:
            return self.columns.number_of(self._referred(token))
        frames = self._lists.get(token)
        if frames is None:
            frames = self._lists[token] = [self._referred(each) for each in _EACH_REFERENCE.findall(token[2:])]
        self._memo.append(frames)
        return self.columns.number_of(frames)

    def _referred(self, token: bytes) -> object:
        return self._memo[token[1] if token[0] == _SHORT else int.from_bytes(token[1:], "little")]


_LIST, _SHORT = ord("]"), ord("h")
_EACH_REFERENCE = re.compile(REFERENCE, re.DOTALL)


def _list(value: object) -> list:
    if type(value) is not list:
        raise TypeError
    return value
