"""The frame of a cell that runs a model or steps of one's own: what was built stands in the record.

A model is looked at in a process of its own, on the CPU or without any memory at all: the device
is not touched, and nothing has run in the process that measures.
"""

import os
import sys
from types import ModuleType

from stepscope.config import own_models
from stepscope.config.flags import Settings
from stepscope.machine import process
from stepscope.machine.identity import PACKAGE, package_version
from stepscope.machine.locks import HELD
from stepscope.measure import processes
from stepscope.measure.cell import Measure, Measurement
from stepscope.measure.found import Found


def cell(program: str, spec: dict, settings: Settings, **more) -> Measurement:
    """The cell of a spec that runs a model, ours or one's own, or a step of one's own; to be
    entered, see Measurement."""
    is_own = bool(own_models.references(spec))
    return (OwnMeasurement if is_own else Measurement)(program, spec, settings, **more)


class OwnMeasurement(Measurement):
    """A cell whose spec names a model or steps of one's own. What was built of a model is `model`
    in the summary.

    What cannot be built or run ends the program with one line.
    """

    def __init__(
        self, program: str, spec: dict, settings: Settings, tools: tuple[str, ...] = (), **more
    ):
        try:
            packages = own_models.packages_of(spec)
            super().__init__(program, spec, settings, (*tools, *packages), **more)
            self._code = own_models.with_files(self._code, spec)
        except own_models.package().ModelError as error:
            sys.exit(f"error: {error}")
        names = [name.removeprefix(PACKAGE) for name in packages]
        self._versions = {name: found for name in names if (found := package_version(name))}
        if "model" in spec:
            self._more = {"model": None}

    def __enter__(self) -> "OwnMeasurement":
        super().__enter__()
        # A step is built where it is measured; the program that measures through this one has
        # shown a model.
        if "model" not in self.spec or HELD in os.environ:
            return self
        try:
            (found,) = processes.each(1, lambda _: looked_at(self.spec))
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        self._more["model"] = found
        said = "not looked at: the host's memory does not hold it"
        if found:
            said = f"{found['parameters']:,} parameters"
        print(f"model       {self.spec['model']}, {said}", flush=True)
        return self

    def __exit__(self, kind, error, trace) -> bool | None:
        super().__exit__(kind, error, trace)
        _end(error)
        return None

    def _one(self, measure: Measure, number: int) -> tuple[Found, dict]:
        """As Measurement has it; a model that fails ends the process with one line."""
        try:
            return super()._one(measure, number)
        except Exception as error:
            _end(error)
            raise


def _end(error: BaseException | None) -> None:
    """End the program with one line if the model is to blame."""
    if isinstance(error, own_models.package().ModelError):
        sys.exit(f"error: {error}")


def looked_at(spec: dict) -> dict | None:
    """What the model of a spec is; None of one that the host has not the memory for.

    Ends the program with one line where it cannot be built or run at all.
    """
    from stepscope.measure import memory

    own = own_models.package()
    keys = own_models.keys_of(spec)
    process.limit_address_space()
    try:
        found = own.describe(spec["model"], keys, spec["context"], spec["batch"], spec["seed"])
        return found | {"attention": chosen_attention(own, spec["model"], keys, spec["context"])}
    except own.ModelError as error:
        sys.exit(f"error: {error}")
    except Exception as error:
        if not memory.is_out_of_memory(error):
            raise
        return None


def chosen_attention(package: ModuleType, reference: str, keys: dict, context: int) -> str | None:
    """The implementation that transformers chose, as `sdpa` or `eager`; None for a model that has
    no such choice.

    package: stepscope.model.own. The choice is made as the model is built
    (`config._attn_implementation`), here once more, without memory; None, too, of a model that
    cannot be built so.
    """
    try:
        module = package.build(reference, keys, context, batch=1, device="meta", seed=0).module
    except Exception:  # any that a model's own code raises where its tensors have no values
        return None
    chosen = getattr(getattr(module, "config", None), "_attn_implementation", None)
    return chosen if isinstance(chosen, str) else None
