"""The section on machines side by side, as it was last looked at: three machines, of which one has no ladder."""

import golden
import hardware_maker as made
from roofline_maker import ceilings

MACHINES = {"old": 1.0, "new-gpu": 0.5, "third": 0.95}  # label -> its time over the baseline's

HOSTS = {"old": 2.0, "new-gpu": 2.1, "third": 3.0}  # ms of the fixed loop
LAUNCHES = {f"{phase}_limited_by": "launches" for phase in made.PHASES}


def timing() -> list[dict]:
    rows = []
    for machine, factor in MACHINES.items():
        for size, ms in (("small", 10.0), ("medium", 40.0)):
            rows += made.repeated(machine, ms * factor, 1.02, size=size)
            rows.append(made.timing(machine, "bf16", size, ms=(0.6 if machine != "new-gpu" else 1.3) * ms * factor))
            marks = LAUNCHES | {"noisy": True, "step_noisy": True, "host_python_ms": HOSTS[machine]}
            rows.append(made.timing(machine, "fp16", size, ms=0.99 * ms * factor, **marks))
        rows.append(made.timing(machine, ms=20.0 * factor**3, context=512, throttle="power cap"))
        rows.append(made.timing(machine, "bf16", ms=45.0 * factor**3, context=512, other_processes=1))
        rows.append(made.timing(machine, ms=9.0 * factor, attention="sdpa", processes=1, optimizer_median_ms=7.0))
    rows += [made.lost("old", size="large"), made.timing("new-gpu", size="large"), made.lost("third", size="large")]
    rows += [made.timing(machine, "bf16", "large", ms=70.0) for machine in MACHINES]
    rows += [made.timing("old", size="large", context=512), made.lost("new-gpu", size="large", context=512)]
    rows += [made.lost("third", "bf16", "unsupported", context=1024), made.timing("old", "bf16", context=1024)]
    rows += [made.lost("new-gpu", "bf16", "failed", context=1024), made.timing("old", context=2048)]
    return rows


def rates() -> list[dict]:
    return [
        *ceilings("old", made.A100, copy=1500.0, fp32=15.0, bf16=250.0),
        *ceilings("new-gpu", "Unheard", copy=3000.0, fp32=40.0, bf16=600.0),
        *ceilings("third", made.L40S, fp32=60.0),
    ]


def memory() -> list[dict]:
    rows = []
    for at, machine in enumerate(MACHINES):
        rows.append(made.memory(machine, (4 + at) * made.GIB, predicted=(4 + at // 2) * made.GIB))
        rows.append(made.memory(machine, (5 - at) * made.GIB, mode="inference", precision="bf16", batch=8))
    rows += [made.memory(name, made.GIB, "large", "ok" if name == "old" else "oom") for name in MACHINES]
    return rows + [made.memory(name, None, "xl", "oom" if name == "old" else "failed") for name in MACHINES]


def attention() -> list[dict]:
    rows = [row for machine, factor in MACHINES.items() for row in made.attention(machine, factor, "naive")]
    rows += [
        row for machine, factor in MACHINES.items() for row in made.attention(machine, factor, "triton", noisy=True)
    ]
    lost = {"status": "oom", "median_ms": None}
    gone = [row | lost for row in rows if row["hardware"] == "third" and row["length"] == 16384]
    return [row for row in rows if row["hardware"] != "third" or row["length"] != 16384] + gone


def ladder() -> list[dict]:
    names = ("fp32", "bf16", "graphs")
    return [
        *made.ladder("old", names, (40.0, 10.0, 5.0)),
        *made.ladder("new-gpu", names, (20.0, 4.0, None)),
        *made.ladder("old", names, (80.0, 30.0, 5.0), context=512, step_noisy=True),
        *made.ladder("new-gpu", names, (79.0, None, None), context=512),
    ]


def test_the_section_is_the_one_that_was_looked_at(tmp_path):
    tables = made.write(
        tmp_path, timing=timing(), ceilings=rates(), memory=memory(), attention=attention(), ladder=ladder()
    )
    golden.check("hardware", tables)
