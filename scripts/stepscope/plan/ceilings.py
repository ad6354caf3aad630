"""The ceilings study's cells: the rates that the machine at hand reaches at best."""

from stepscope.plan.grid import Cell, stopping_rule, without_duplicates

PROGRAM = "measure_ceilings.py"


def cells(config: dict, device: str, hardware: str, threads: int) -> list[Cell]:
    """A large matrix product for each precision of the configuration, and a large copy."""
    study = config["ceilings"]
    settings = study[device]
    common = {
        "warmup": study["warmup"][device],
        **stopping_rule(settings["steps"]),
        "seed": config["model"]["seed"],
        "threads": threads,
        "device": device,
    }
    matmul = {"operation": "matmul", "order": settings["matmul_order"]}
    copy = {"operation": "copy", "mebibytes": settings["copy_mebibytes"]}
    chosen = [{**matmul, "precision": precision} for precision in settings["precision"]]
    chosen.append({**copy, "precision": "fp32"})
    result = [
        Cell(
            name=f"{hardware}/ceilings/{part['operation']}/{part['precision']}",
            study="ceilings",
            size=None,
            program=PROGRAM,
            spec={"study": "ceilings", **part, **common},
        )
        for part in chosen
    ]
    return without_duplicates("ceilings", result)
