"""Finding GPUs, versions and names, on machines that are made up."""

import platform
import sys
from types import SimpleNamespace

import pytest
from common import one_line
from stepscope.machine import gpus, identity
from stepscope.machine.gpus import Gpu
from stepscope.machine.identity import MachineError

A = Gpu("NVIDIA H100 80GB HBM3", "GPU-aaaa-1", 81559, "580.65.06")
B = Gpu("Tesla V100-SXM2-16GB", "GPU-bbbb-2", 16384, "580.65.06")


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch, tmp_path):
    """No GPU, an empty /proc, no environment; nothing remembered from before."""
    monkeypatch.setattr(identity, "PROC", tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    remembered = [gpus._gpus, identity.cpu_name, identity.tool_version, identity._torch]
    for cached in remembered:
        cached.cache_clear()
    yield
    for cached in remembered:
        cached.cache_clear()


@pytest.fixture
def nvml(monkeypatch):
    """Install a pynvml that knows these GPUs."""

    def install(*gpus, fails_at=""):
        class NVMLError(Exception):
            pass

        def fail(*_):
            raise NVMLError

        answers = {
            "nvmlInit": lambda: None,
            "nvmlShutdown": lambda: None,
            "nvmlSystemGetDriverVersion": lambda: A.driver,
            "nvmlDeviceGetCount": lambda: len(gpus),
            "nvmlDeviceGetHandleByIndex": gpus.__getitem__,
            "nvmlDeviceGetName": lambda gpu: gpu.name,
            "nvmlDeviceGetUUID": lambda gpu: gpu.uuid,
            "nvmlDeviceGetMemoryInfo": lambda gpu: SimpleNamespace(total=gpu.memory_mib * 2**20),
        }
        fake = SimpleNamespace(NVMLError=NVMLError, **answers | {fails_at: fail})
        monkeypatch.setitem(sys.modules, "pynvml", fake)

    return install


@pytest.fixture
def torch_of(monkeypatch, tmp_path):
    """Install a torch that has a version.py and cannot be imported; without a version none."""

    def install(version, cuda=None):
        if version is None:
            monkeypatch.setattr(identity.importlib.util, "find_spec", lambda name: None)
            return
        folder = tmp_path / "site/torch"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("raise SystemExit('torch was imported')")
        (folder / "version.py").write_text(
            "from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda',"
            f" 'git_version', 'hip']\n__version__ = {version!r}\ndebug = False\ncuda: Optional[str]"
            f" = {cuda!r}\ngit_version = '0123'\nhip: Optional[str] = None\n"
        )
        monkeypatch.syspath_prepend(str(folder.parent))
        monkeypatch.delitem(sys.modules, "torch", raising=False)

    return install


def test_a_machine_without_a_driver_has_no_gpu():
    assert gpus.visible_gpus() == []


def test_gpus_are_found_through_nvml(nvml):
    nvml(A, B)
    assert gpus.visible_gpus() == [A, B]


@pytest.mark.parametrize("fails_at", ["nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetName"])
def test_no_gpu_is_found_where_nvml_fails(nvml, fails_at):
    nvml(A, B, fails_at=fails_at)
    assert gpus.visible_gpus() == []


@pytest.mark.parametrize(
    "visible, expected",
    {
        "0": [A],
        "1": [B],
        "1,0": [B, A],
        " 1 , 0 ": [B, A],
        "GPU-bbbb-2": [B],
        "GPU-b,GPU-a": [B, A],
        "": [],
        "-1": [],
        "2": [],
        "0,7,1": [A],  # CUDA stops at the first that it does not know
        "NoDevFiles": [],
    }.items(),
)
def test_only_the_visible_gpus_count_in_their_order(visible, expected, nvml, monkeypatch):
    nvml(A, B)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpus.visible_gpus() == expected


@pytest.mark.parametrize(
    "version, cuda", [("2.13.0+cu130", "13.0"), ("2.13.0+cpu", None), (None, None)]
)
def test_the_version_of_torch_is_read_without_importing_it(version, cuda, torch_of):
    torch_of(version, cuda)
    assert identity.torch_version() == version
    assert version is None or "torch" not in sys.modules


@pytest.mark.parametrize("wanted", ["auto", "cuda", "cpu"])
@pytest.mark.parametrize("has_gpu", [False, True])
@pytest.mark.parametrize("torch", ["13.0", None, "none"])
def test_the_device_for_every_machine_and_wish(wanted, has_gpu, torch, nvml, torch_of):
    nvml(*[A] * has_gpu)
    # Without torch here, the jobs bring their own: --sdm conda.
    torch_of(None if torch == "none" else "2.13.0", torch)
    can_use_a_gpu = has_gpu and torch is not None
    if wanted == "cuda" and not can_use_a_gpu:
        nothing = "no NVIDIA GPU is visible here; use device: auto or device: cpu"
        problem = "built without CUDA" if has_gpu else nothing
        said = one_line(MachineError, identity.choose_device, wanted)
        assert said.startswith("device: cuda, but ") and problem in said
    else:
        uses_it = can_use_a_gpu and wanted != "cpu"
        assert identity.choose_device(wanted) == ("cuda" if uses_it else "cpu")


def test_the_identity_is_of_the_type_of_gpu_not_of_the_one_at_hand(nvml, torch_of, monkeypatch):
    nvml(A)
    torch_of("2.13.0+cu130", "13.0")
    monkeypatch.setattr(identity, "package_version", {"triton": "3.5.0"}.get)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert identity.identity("cuda") == {
        "device": "cuda",
        "python": python,
        "gpu": A.name,
        "gpu_memory_mib": 81559,
        "driver": "580.65.06",
        "triton": "3.5.0",
        "torch": "2.13.0+cu130",
    }
    assert identity.identity("cpu").keys() == {"device", "python", "cpu", "torch"}


def test_versions_pinned_for_another_environment_replace_those_here(nvml, torch_of, monkeypatch):
    nvml(A)
    torch_of("2.12.0+cpu", None)
    monkeypatch.setattr(identity, "package_version", {"triton": "3.4.0"}.get)
    pinned = {"python": "3.12", "torch": "2.13.0"}
    found = identity.identity("cuda", versions=pinned | {"einops": "0.8.2"})
    assert pinned.items() <= found.items()
    # Not pinned: torch brings the triton that it needs, and nothing here can know it.
    assert not {"einops", "triton"} & set(found)


def test_tools_count_with_their_version_and_as_missing(monkeypatch, tmp_path):
    tool = tmp_path / "nsys-fake"
    tool.write_text("#!/bin/sh\necho 'Nsight 2025.1'\necho more\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = identity.identity("cpu", tools=("nsys-fake", "no-such-tool"))
    assert found["tools"] == {"nsys-fake": "Nsight 2025.1", "no-such-tool": None}


def test_packages_of_a_model_count_with_their_version_and_as_missing(monkeypatch):
    monkeypatch.setattr(identity, "package_version", {"timm": "1.0"}.get)
    packages = ("timm", "missing")
    found = identity.identity("cpu", packages=packages)
    assert found["packages"] == {"timm": "1.0", "missing": None} and "tools" not in found
    # Of another environment only what its file pins is known.
    elsewhere = identity.identity("cpu", (), packages, {"timm": "2.0", "einops": "1"})
    assert elsewhere["packages"] == {"timm": "2.0"}


@pytest.mark.parametrize(
    "label, name",
    {
        "intel-xeon-platinum-8370c": "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz",
        "intel-core-i7-9700k": "Intel(R) Core(TM)  i7-9700K CPU @ 3.60GHz",
        "amd-epyc": "AMD EPYC",
        "amd-ryzen-9-7950x-16-core-processor": "AMD Ryzen 9 7950X 16-Core Processor",
        "cpu": "@ 3 GHz",
    }.items(),
)
def test_the_label_of_a_cpu(name, label, tmp_path):
    (tmp_path / "cpuinfo").write_text(
        f"processor\t: 0\nmodel name\t: {name}\nflags\t: fpu\nmodel name\t: other\n"
    )
    assert identity.hardware_label("cpu") == label


def test_the_label_of_a_gpu(nvml):
    nvml(A, B)
    assert identity.hardware_label("cuda") == "nvidia-h100-80gb-hbm3"


def test_a_processor_without_a_name_is_called_by_its_architecture(tmp_path):
    assert identity.cpu_name() == platform.machine()
