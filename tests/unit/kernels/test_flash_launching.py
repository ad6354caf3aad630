"""A plan's later launches give Triton's launcher what its own first one gives it, with other addresses."""

from types import SimpleNamespace

import pytest
import torch
from stepscope.kernels import fused, launching
from stepscope.kernels.driver import Launched
from stepscope.kernels.launching import Described, Plan, Slot
from triton.backends.nvidia.driver import CudaLauncher


class OneAfterTheOther:
    """As Triton 3.6 calls its compiled launcher: the kernel's arguments are the launcher's last ones."""

    def __call__(self, x, y, z, stream, function, *arguments):
        self.launch(x, y, z, stream, function, False, False, None, None, *arguments)

    @staticmethod
    def arguments(passed):
        return passed[13:]


class AsInstalled:
    """The installed Triton's own way, without the GPU that its constructor asks for."""

    __call__ = CudaLauncher.__call__
    num_ctas = 1
    global_scratch_size = profile_scratch_size = 0
    global_scratch_align = profile_scratch_align = 1
    launch_cooperative_grid = launch_pdl = False
    arg_annotations = kernel_signature = None

    @staticmethod
    def arguments(passed):
        together = isinstance(passed[-1], (list, tuple))
        return list(passed[-1]) if together else list(passed[13:])


def compiled_with(way, seen, described):
    run = way()

    def launcher(*passed):
        seen.append(passed)

    tensordesc_meta = [{}] * described

    def inner(*passed):  # has what Triton's has in its closure
        return launcher, tensordesc_meta

    run.launch = inner if described else launcher
    return SimpleNamespace(run=run, function=7, packed_metadata=(4, 1, 0))


@pytest.mark.parametrize("way", [OneAfterTheOther, AsInstalled])
@pytest.mark.parametrize("described", [0, 2])
def test_arguments_stand_in_the_order_of_the_kernel(monkeypatch, way, described):
    monkeypatch.setattr(launching._Encoded, "at", lambda self, address: [("map", address), *self._described.shape])
    tensors = [torch.empty(2, 16) for _ in range(4)]
    plan = Plan(tensors)
    scratch = plan.scratch(3, 5, dtype=torch.float32)
    tiles = [Described(slot, slot.shape, slot.strides, (1, 16), None) for slot in plan.slots[:described]]
    pointers = [*plan.slots[described:4], scratch]
    launch = launching._Launch(None, (9, 1, 1), (*tiles, *pointers, (16, 1), 0.5), {"ROWS": 64}, {})
    seen = []
    compiled = compiled_with(way, seen, described)
    again = launch._prepared(compiled)
    assert again is not None and not seen
    again([100, 200, 300, 400, 500], 33)
    (passed,) = seen
    assert passed[:5] == (9, 1, 1, 33, 7) and (4, 1, 0) in passed
    expected = [100, 200, 300, 400, 500, (16, 1), 0.5, 64]
    if described:
        expected[:2] = [("map", 100), 2, 16, ("map", 200), 2, 16]
    assert list(way.arguments(passed)) == expected


def test_a_launcher_that_is_not_as_expected_is_left_alone():
    launch = launching._Launch(None, (1, 1, 1), (Slot(0, (16,), (1,), torch.float32),), {}, {})

    class Other:
        launch = None

        def __call__(self, x, y, z, stream, *arguments):
            self.launch(*arguments, stream, stream)

    assert launch._prepared(SimpleNamespace(run=Other(), function=0, packed_metadata=())) is None


def test_scratch_is_apart_and_aligned():
    plan = Plan([torch.empty(1)])
    first, second = plan.scratch(3, 5, dtype=torch.float32), plan.scratch(7, dtype=torch.int32)
    assert (first.strides, second.strides) == ((5, 1), (1,)) and first.size() == 60
    assert plan._offsets == [0, 512] and plan.scratch_bytes == 1024


@pytest.fixture
def recorded(monkeypatch):
    """What a plan with descriptors of a tensor and of scratch records, where the driver saw these parameters."""

    def make(changed=None, **metadata):
        plan = Plan([torch.empty(2, 16) for _ in range(3)])
        small, large = plan.scratch(3, 5, dtype=torch.float32), plan.scratch(2, 16, dtype=torch.float32)
        described = [Described(slot, slot.shape, slot.strides, (1, 16), None) for slot in (plan.slots[0], large)]
        plan.launch(None, (9,), (*described, plan.slots[2], small, plan.slots[1], 7), {})
        (launch,) = plan._launches
        known = {"num_ctas": 1, "launch_pdl": False, "launch_cooperative_grid": False, "global_scratch_size": 0}
        launch.compiled = SimpleNamespace(metadata=SimpleNamespace(**known | metadata))
        given = []
        launch.again = lambda addresses, stream: given.append((addresses, stream))

        def seen(make_launch):
            make_launch(55)
            ((addresses, stream),) = given
            assert stream == 55 and len(set(addresses)) == 5
            words = [addresses[2], addresses[3], addresses[1], 7]
            parameters = bytes(256) + b"".join(word.to_bytes(8, "little") for word in words) + (9).to_bytes(4, "little")
            places = [(0, 128), (128, 128), (256, 8), (264, 8), (272, 8), (280, 8), (288, 4)]
            return Launched(5, (9, 1, 1), (128, 1, 1), 64, parameters, tuple(places[changed:]))

        monkeypatch.setattr(launching, "recorded", seen)
        return plan.recorded()

    return make


def test_each_address_is_found_in_what_the_driver_saw(recorded):
    ((function, grid, block, shared_bytes, parameters, places),) = recorded()
    assert (function, grid, block, shared_bytes, len(parameters)) == (5, (9, 1, 1), (128, 1, 1), 64, 292)
    # Scratch is one tensor after the three: the small part at its begin, the large one 512 bytes on.
    expected = [(0, 0, 0, True), (128, 3, 512, True), (256, 2, 0, False), (264, 3, 0, False), (272, 1, 0, False)]
    assert sorted(places) == expected


def test_a_launch_of_which_more_is_to_be_known_is_not_recorded(recorded):
    assert recorded(changed=1) is None and recorded(changed=3) is None
    for more in ({"num_ctas": 2}, {"launch_pdl": True}, {"global_scratch_size": 8}, {"launch_cooperative_grid": True}):
        assert recorded(**more) is None


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_kernels_run_on_the_device_of_their_tensors_not_on_the_current_one(random_tensors, exact, assert_close, run):
    given = random_tensors((1, 2), 300, 300, 64, torch.bfloat16)
    right = [x.to("cuda:1") for x in exact(*given, True)]
    with torch.cuda.device(0):
        for _ in range(2):
            results = run(fused.attention_and_lse, *(x.to("cuda:1") for x in given), True)
            assert all(x.device.index == 1 for x in results) and torch.cuda.current_device() == 0
            assert_close(results, right, 1.6e-2)
