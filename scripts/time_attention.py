"""Time attention by itself: one implementation, head dimension and precision over sequences of growing length.

Prints for each length and direction the median time of several processes in milliseconds, that of each, TFLOP/s
(4 batch heads length^2 d_head operations forward, half if causal, with --keys, --window or another mask those of the
pairs that are seen; 2.5 times as many backward), the memory that is allocated when the first backward begins (inputs,
output and what autograd saved) and the peak, in MiB. On a GPU it prints at the shortest length the microseconds for
which a call keeps the host busy: of `forward` one forward pass, of `backward` a forward and a backward pass. With --out
it also writes record.json and samples.csv.
"""

import sys

from stepscope.axes import CAUSAL, FULL, IMPLEMENTATIONS, MASKS, PRECISIONS
from stepscope.measure import arguments, printing, process
from stepscope.measure.cell import Cell, Settings
from stepscope.measure.series import ATTENTION_COLUMNS


def main() -> None:
    spec, settings = parse(sys.argv[1:])
    chosen = {"attention": IMPLEMENTATIONS[spec["implementation"]].module}
    with Cell("time_attention.py", spec, settings, chosen) as running:
        from stepscope.measure import attention

        def measured(_number: int) -> list[attention.Outcome]:
            if reason := running.unsupported():
                return attention.unsupported(spec, reason)
            return list(attention.measure(spec, running.telemetry))

        outcomes = attention.merged(running.in_processes(measured))
        for outcome in outcomes:
            _say(spec, outcome)
        rows = [row for outcome in outcomes for row in outcome.rows]
        running.finish(ATTENTION_COLUMNS, rows, attention.summary(outcomes))


def _say(spec: dict, outcome) -> None:
    """Print one length and direction."""
    from stepscope.measure import attention

    (entry,) = attention.summary([outcome])["series"]
    name = f"{outcome.length:>7}  {outcome.direction:<9}"
    if entry["status"] != "ok":
        print(f"{name}{entry['status']}: {entry['reason']}")
        return
    flops = attention.operations(spec, outcome.length, outcome.direction)
    found = printing.over_processes(entry["processes"])
    memory = [entry[key] for key in ("before_backward_bytes", "peak_bytes")]
    sizes = "".join("" if size is None else f"  {size / 2**20:,.1f} MiB" for size in memory)
    rate = f"{flops / found.median / 1e12:.1f} TFLOP/s"
    host = "" if entry["host_seconds"] is None else f"  host {1e6 * entry['host_seconds']:.1f} µs"
    host += "" if entry["host_over_sdpa"] is None else f", {entry['host_over_sdpa']:.2f} times SDPA's"
    print(f"{name}{found.count:>4}  {1000 * found.median:.4f} ms ({found.each(4)})  {rate}{sizes}{host}")


def parse(words: list[str]) -> tuple[dict, Settings]:
    """Flags to the cell's spec, and what does not belong to it."""
    flags = arguments.parser(__doc__)
    group = flags.add_argument_group("cell")
    group.add_argument("--implementation", choices=list(IMPLEMENTATIONS), default="naive", help="what is timed")
    group.add_argument("--d-head", type=arguments.positive, default=64, help="dimension of a head")
    group.add_argument("--lengths", type=_lengths, default="256,1024,4096", help="sequence lengths in tokens")
    group.add_argument("--batch", type=arguments.positive, default=None, help="sequences (8)")
    group.add_argument("--tokens", type=arguments.positive, default=None, help="batch x length, instead of --batch")
    group.add_argument("--heads", type=arguments.not_negative, default=0, help="0: no dimension of heads")
    group.add_argument("--causal", choices=["no", "yes"], default="no", help="yes: as --mask causal")
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
    arguments.add_running(flags, fixed_steps=True, processes=True)
    group.add_argument("--max-seconds", type=arguments.duration, default=2.0, help="seconds after which passes end")
    given = flags.parse_args(words)
    arguments.resolve_running(given, flags)
    if given.batch and given.tokens:
        flags.error("give --batch or --tokens, not both")
    many = {"tokens": given.tokens} if given.tokens else {"batch": given.batch or 8}
    keys = (
        "d_head",
        "lengths",
        "precision",
        "processes",
        "warmup",
        "steps",
        "max_seconds",
        "seed",
        "threads",
        "device",
    )
    spec = {"study": "attention", "implementation": given.implementation, **many}
    spec |= {key: getattr(given, key) for key in keys}
    if given.causal == "yes" and given.mask not in (FULL, CAUSAL):
        flags.error(f"--causal yes is --mask {CAUSAL}; give one of them")
    mask = CAUSAL if given.causal == "yes" else given.mask
    if given.window and mask == FULL:
        flags.error(f"--window needs a causal mask; add --mask {CAUSAL}")
    if given.key_value_heads and (not given.heads or given.heads % given.key_value_heads):
        flags.error(f"--key-value-heads {given.key_value_heads} does not divide --heads {given.heads}; use a divisor")
    if given.key_value_heads == given.heads:
        given.key_value_heads = 0
    spec |= {key: value for key in ("heads", "key_value_heads", "keys", "window") if (value := getattr(given, key))}
    if mask != FULL:
        spec |= {"causal": "yes"} if mask == CAUSAL else {"mask": mask}
    return spec, arguments.settings(given)


def _lengths(text: str) -> str:
    """Whole numbers of at least 1, separated by commas."""
    return ",".join(str(arguments.positive(part)) for part in text.split(","))


if __name__ == "__main__":
    main()
    process.leave()
