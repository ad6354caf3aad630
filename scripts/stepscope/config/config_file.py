"""Whether a configuration's file can be read, asked before Snakemake reads it, which would answer with a traceback."""

from pathlib import Path

DEEPEST = 50  # mappings and lists inside each other
MOST_NODES = 100_000  # with what aliases stand for


def unreadable(path: Path) -> str | None:
    """None if the file is YAML that Snakemake can read; else one line that says what is wrong and where."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return f"{path}: there is no such file; restore it, or name another with --configfile"
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}; put a file in its place"
    except UnicodeDecodeError as error:
        return f"{path} is not text in UTF-8 (byte {error.start}); save it as UTF-8"
    return _wrong_yaml(path, text)


def _wrong_yaml(path: Path, text: str) -> str | None:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        if problem := _too_much(yaml.parse(text, Loader=loader)):
            return f"{path}: {problem}"
        content = yaml.load(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}" if mark else ""
        return f"{path}{where}: {error.problem or error.context}; correct it"
    except (yaml.YAMLError, ValueError) as error:
        return f"{path} is not YAML: {str(error).splitlines()[0]}; correct it"
    if not isinstance(content, dict):
        return f"{path} holds no keys at its top level; write lines like `device: cpu`"
    return None


def _too_much(events) -> str | None:
    """What is wrong if nodes are too deep or too many, or one holds itself; events are looked at one by one, so that
    nothing is as deep as the file."""
    import yaml

    sizes: dict[str, int] = {}  # anchor → nodes that it stands for
    open_nodes: list[list] = []  # [anchor, nodes so far]
    for event in events:
        size, line = 0, event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in open_nodes):
                return f"line {line}: *{event.anchor} stands inside of what it names; write it out"
            size = sizes.get(event.anchor, 1)
        elif isinstance(event, yaml.ScalarEvent):
            size = sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append([event.anchor, 1])
            if len(open_nodes) > DEEPEST:
                return f"line {line}: more than {DEEPEST} levels inside each other; no key needs as many"
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, size = open_nodes.pop()
            sizes[anchor] = size
        if open_nodes:
            open_nodes[-1][1] += size
            if open_nodes[-1][1] > MOST_NODES:
                return f"line {line}: more than {MOST_NODES} values, counting what aliases stand for; use fewer"
    return None
