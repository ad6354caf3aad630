"""On a machine with several GPUs each cell has one of its own, whoever started the run: three faked GPUs here."""

# Instead of measuring: say which GPU it is, go on once two are there at the same time, and never be two on one.
STUB = """
import os, pathlib, sys, time
from stepscope.machine import gpus, locks

out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
inside = pathlib.Path(os.environ["STEPSCOPE_LOCKS"]) / "inside"
inside.mkdir(parents=True, exist_ok=True)
(gpu,) = gpus.visible_gpus()
with locks.hold(gpu.uuid):
    (inside / gpu.uuid).touch(exist_ok=False)
    deadline = time.monotonic() + 60
    while len(list(inside.iterdir())) < int(os.environ["TOGETHER"]) and not (inside.parent / "met").exists():
        if time.monotonic() > deadline:
            sys.exit("never so many at once")
        time.sleep(0.02)
    (inside.parent / "met").touch()
    (inside / gpu.uuid).unlink()
out.mkdir(parents=True, exist_ok=True)
(out / "samples.csv").write_text("")
(out / "record.json").write_text(gpu.uuid)
"""


def with_gpus(project, count):
    """Let the project see so many GPUs, and measure with the stub; the grid is that of the CPU."""
    machine = "scripts/stepscope/machine"
    fakes = f'[Gpu("Fake", f"GPU-{{i}}", 80, "1.0") for i in range({count})]'
    project.edit(f"{machine}/gpus.py", "    gpus = _gpus_from_nvml() or _gpus_from_proc()\n", f"    gpus = {fakes}\n")
    project.edit(f"{machine}/identity.py", 'return _torch_version_fields().get("cuda") is not None', "return True")
    (project.folder / "scripts/time_step.py").write_text(STUB)

    def for_cuda(value):
        if isinstance(value, dict):
            value |= {"cuda": value["cpu"]} if "cpu" in value else {}
            for item in value.values():
                for_cuda(item)

    project.configure(for_cuda, device="cuda")


def measure(project, gpus, together):
    visible = ",".join(str(i) for i in range(gpus))
    words = ("report", "--cores", gpus, "--resources", f"gpu={gpus}", "--until", "time_step")
    return project.start(*words, environment={"CUDA_VISIBLE_DEVICES": visible, "TOGETHER": together})


def used(project):
    """The GPU of each cell."""
    return [path.read_text() for path in project.folder.glob("results/*/timing/**/record.json")]


def test_as_many_cells_run_at_once_as_there_are_gpus(bare_project):
    with_gpus(bare_project, 3)
    run = measure(bare_project, 3, together=3)
    text, _ = run.communicate(timeout=120)
    assert run.returncode == 0, text
    assert sorted(used(bare_project)) == ["GPU-0", "GPU-1", "GPU-2"]


def test_two_workflows_share_the_gpus_and_never_meet_on_one(bare_projects):
    projects = [bare_projects(name) for name in ("one", "other")]
    for project in projects:
        with_gpus(project, 2)
        project.configure(lambda config: config["timing"]["grid"]["cuda"][0].update(context=[8, 4]))
    runs = [measure(project, 2, together=2) for project in projects]
    texts = [run.communicate(timeout=120)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], "\n".join(texts)
    assert [len(used(project)) for project in projects] == [5, 5]
    assert {gpu for project in projects for gpu in used(project)} == {"GPU-0", "GPU-1"}


def test_one_gpu_runs_its_cells_by_itself(bare_project):
    with_gpus(bare_project, 1)
    run = measure(bare_project, 1, together=1)
    text, _ = run.communicate(timeout=120)
    assert run.returncode == 0, text
    assert used(bare_project) == ["GPU-0"] * 3
