"""What the terminal shows of a cell of several devices, beside times: its tables. No torch."""

from stepscope.trace.apart import ADDING_UP
from stepscope.trace.collectives import bus_bytes

SHOWN = ("clock", *ADDING_UP, "residual", "beside", "waited_by_others")


def tables(more: dict, devices: int) -> None:
    """Collectives; then the parts of each rank's step in ms; then memory in MiB."""
    found = more.get("tables", {})
    for row in found.get("collectives", []):
        size = row["bytes"] / 2**20
        took = 1e6 * row["seconds"]
        bus = bus_bytes(row["collective"], row["bytes"], row["bytes"], devices) / row["seconds"]
        print(f"{row['collective']} of {size:,.3f} MiB: {took:,.1f} µs, {bus / 1e9:,.1f} GB/s")
    if found.get("ranks"):
        print(f"{'ms of a step':<28}" + "".join(f"{name[:9]:>10}" for name in SHOWN))
    for row in found.get("ranks", []):
        numbers = "".join(f"{1e3 * row[name]:>10.3f}" for name in SHOWN)
        print(f"{row['variant']:<22}rank {row['rank']:<1}{numbers}")
    for row in found.get("memory", []):
        held = row["held"] / 2**20
        formula = row["formula"] / 2**20
        print(f"{row['variant']} {row['point']}: {held:,.0f} MiB, by formula {formula:,.0f}")
