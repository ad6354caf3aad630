# What holds for a run as a whole: that it is alone in its folder, and what it says at its end.
# Makes no files but what its jobs read of the machines.
from stepscope.config.run import end_from_a_thread, forget, speak_safely, unwritable
from stepscope.machine import slurm
from stepscope.machine.locks import lock_run, unlockable
from stepscope.recordings.text import last_error

MOST_NAMED = 20  # cells without a result
speak_safely(workflow.is_main_process)


def refusal():
    """One line that says why nothing can be run here now; None if it can."""
    refused = lock_run() or unwritable(Path("results"))
    if not refused and HERE:
        refused = unlockable()
    submits = config["measure"] and not workflow.touch and any(one.by_jobs for one in MACHINES)
    if not refused and submits:
        settings = getattr(workflow, "executor_settings", None)
        refused = slurm.complaint(MACHINES, Path.cwd(), settings)
    return refused


def records_of(jobs):
    """The records that jobs make."""
    return [path for job in jobs for path in job.output if Path(path).name == "record.json"]


def whole_or_forced(jobs):
    """Of these jobs those whose outputs Snakemake holds for whole, and those that somebody wants to
    run."""
    dag = workflow.dag
    return [
        job
        for job in jobs
        if not dag.needrun(job) or (dag.reason(job).forced and not is_incomplete(job))
    ]


def is_incomplete(job):
    """Whether Snakemake has not come to note that the outputs that are there are finished; it
    forces the job by itself then."""
    return bool(workflow.async_run(workflow.persistence.incomplete(job)))


onstart:
    if refused := refusal():
        print(refused, file=sys.stderr)
        sys.exit(1)
    end_from_a_thread()
    forget(records_of(whole_or_forced(workflow.dag.jobs)))
    plan = Path("results/plan.json")
    # It may have been copied here without Snakemake's notes, which would tell that it is another.
    if plan.exists() and plan.read_bytes() != CELLS.plan.encode():
        write_plan(plan, "results/plan.log")


onsuccess:
    forget(records_of(workflow.dag.jobs))


onerror:
    forget(records_of(workflow.dag.finished_jobs))
    if missing := CELLS.missing():
        print(f"{len(missing)} of {len(CELLS.names())} cells are without a result:")
        for name in missing[:MOST_NAMED]:
            print(f"  results/{name}  (log: results/{name}/measure.log)")
            if told := last_error(Path("results", name, "measure.log")):
                print(f"    {told}")
        if len(missing) > MOST_NAMED:
            print(f"  and {len(missing) - MOST_NAMED} more")
        print("The same command measures them again;", end=" ")
        print("with measure=false after --config it writes the report of the others.")
