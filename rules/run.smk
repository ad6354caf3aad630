# What holds for a run as a whole: that it is alone in its folder, and what it says at its end.
# Makes no files but what its jobs read of the machines.
import shutil

from stepscope.config.run import KEPT, RunLock, speak_briefly, unlockable, unwritable
from stepscope.files import is_full
from stepscope.machine import arrival, slurm

RUN_LOCK = RunLock()


onstart:
    refused = RUN_LOCK.take() or unwritable(Path("results")) or (HERE and unlockable())
    if (
        not refused
        and config["measure"]
        and not workflow.touch
        and any(one.by_jobs for one in MACHINES)
    ):
        refused = slurm.complaint(
            MACHINES, Path.cwd(), getattr(workflow, "executor_settings", None)
        )
    if refused:
        print(refused, file=sys.stderr)
        sys.exit(1)
    arrival.write(MACHINES)
    plan = Path("results/plan.json")
    if (
        plan.exists() and plan.read_bytes() != CELLS.plan.encode()
    ):  # copied here without Snakemake's notes, which would tell
        write_plan(plan, "results/plan.log")
    speak_briefly()


onsuccess:
    shutil.rmtree(KEPT, ignore_errors=True)
    for said in ("results/ab/said.txt", "results/compare/said.txt"):
        if os.path.isfile(said):
            print(Path(said).read_text(), end="")
            os.remove(said)
    if os.path.isfile("results/compare/exit_code"):
        code = int(Path("results/compare/exit_code").read_text())
        os.remove("results/compare/exit_code")
        sys.exit(code)


onerror:
    shutil.rmtree(KEPT, ignore_errors=True)
    if is_full(Path("results")):
        print(
            f"error: the disk of {Path('results').resolve()} is full; make room and run again, nothing is lost"
        )
    if missing := CELLS.missing():
        print(f"{len(missing)} of {len(CELLS.names())} cells are without a result:")
        print(
            *(f"  results/{name}  (log: results/{name}/measure.log)" for name in missing[:20]),
            sep="\n",
        )
        print(*[f"  and {len(missing) - 20} more"] * (len(missing) > 20), sep="\n")
        print(
            "The same command measures them again; with `--config measure=false` it writes the report of the others."
        )
