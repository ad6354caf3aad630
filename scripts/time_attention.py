"""Time attention by itself: implementations in turns, at one head dimension and precision, over growing sequences.

Prints for each implementation, length and direction the times of several fresh processes in milliseconds, the memory
that is allocated when the first backward begins (inputs, output and what autograd saved) and the peaks, in MiB. On a
GPU it prints at the shortest length for how long a call keeps the host busy: of `forward` one forward pass, of
`backward` a forward and a backward pass. With --out it also writes record.json and samples.csv.
"""

import sys

from stepscope.axes import CAUSAL, FULL, IMPLEMENTATIONS, MASKS, PRECISIONS
from stepscope.measure import arguments, process
from stepscope.measure.cell import Cell, Settings


def main() -> None:
    with Cell("time_attention.py", *parse(sys.argv[1:])) as running:
        from stepscope.measure import attention

        running.finish(running.in_processes(attention.measure), [one["name"] for one in running.spec["variants"]])


def parse(words: list[str]) -> tuple[dict, Settings]:
    """Flags to the cell's spec, and what does not belong to it."""
    flags = arguments.parser(__doc__)
    group = flags.add_argument_group("cell")
    every = [{"name": name} for name in IMPLEMENTATIONS]
    group.add_argument("--variants", type=arguments.variants, default=every, help="JSON: what is timed, by name")
    group.add_argument("--d-head", type=arguments.positive, default=64, help="dimension of a head")
    group.add_argument("--lengths", type=arguments.lengths, default=[256, 1024, 4096], help="of sequences, in tokens")
    group.add_argument("--batch", type=arguments.positive, default=None, help="sequences (8)")
    group.add_argument("--tokens", type=arguments.positive, default=None, help="batch x length, instead of --batch")
    group.add_argument("--heads", type=arguments.not_negative, default=0, help="0: no dimension of heads")
    group.add_argument(
        "--mask",
        choices=MASKS,
        default=FULL,
        help="causal: query i sees keys 0 to i (upper left corner); causal-lower-right: the last query sees all keys",
    )
    group.add_argument("--key-value-heads", type=arguments.not_negative, default=0, help="of K and V; 0: --heads")
    group.add_argument("--keys", type=arguments.not_negative, default=0, help="length of K and V; 0: the queries'")
    group.add_argument(
        "--window", type=arguments.not_negative, default=0, help="keys that a query sees at most; 0: no window"
    )
    group.add_argument("--precision", choices=PRECISIONS, default="fp32", help="of Q, K and V; fp32 has TF32 off")
    arguments.add_running(flags, budget=(6, 40, 0.15), warmup=3)
    given = flags.parse_args(words)
    arguments.resolve_running(given, flags)
    for name in (one["name"] for one in given.variants):
        if name not in IMPLEMENTATIONS:
            flags.error(f"--variants: there is no implementation {name!r}; choose from {', '.join(IMPLEMENTATIONS)}")
    if given.batch and given.tokens:
        flags.error("give --batch or --tokens, not both")
    if given.window and given.mask == FULL:
        flags.error(f"--window needs a causal mask; add --mask {CAUSAL}")
    if given.key_value_heads and (not given.heads or given.heads % given.key_value_heads):
        flags.error(f"--key-value-heads {given.key_value_heads} does not divide --heads {given.heads}; use a divisor")
    if given.key_value_heads == given.heads:
        given.key_value_heads = 0
    spec = {"study": "attention", **({"tokens": given.tokens} if given.tokens else {"batch": given.batch or 8})}
    spec |= {key: getattr(given, key) for key in ("d_head", "lengths", "precision", "variants")}
    spec |= {key: value for key in ("heads", "key_value_heads", "keys", "window") if (value := getattr(given, key))}
    spec |= {"mask": given.mask} if given.mask != FULL else {}
    return spec | arguments.running_keys(given), arguments.settings(given)


if __name__ == "__main__":
    main()
    process.leave()
