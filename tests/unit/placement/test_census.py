"""What is kept between decisions: answers per wish and slice object (architecture, section 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dra_operator.errors import WorkLimitReached
from dra_operator.features import DEFAULT_1_37, Features
from dra_operator.model import ExactDeviceRequest, from_object
from dra_operator.placement.census import JUDGING, MAX_WISHES, Census, Wish, wish_of

from .build import ToyCompiler, ToySelector, device_class, form, gpu_class, slice_

if TYPE_CHECKING:
    from dra_operator.model import Device, ResourceSlice


class CountingCompiler(ToyCompiler):
    """Notes every device that a selector is asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def compile(self, expression: str, features: Features) -> ToySelector:
        found = super().compile(expression, features)
        asked = self.asked

        class Counting(ToySelector):
            def matching(self, _: ResourceSlice) -> int | None:
                return None

            def matches(self, slice_: ResourceSlice, device: Device) -> bool:
                asked.append(str(slice_.device_id(device)))
                return found.matches(slice_, device)

        return Counting(expression)


def wish(*selectors: str, class_: str = "gpu") -> Wish:
    return wish_of(from_object(ExactDeviceRequest, form(class_, *selectors)))


def census(compiler: ToyCompiler, *slices: ResourceSlice, features: Features = DEFAULT_1_37) -> Census:
    found = Census(compiler, features, frozenset({"ours"}))
    found.classes_changed({"gpu": gpu_class()})
    found.slices_changed(slices)
    return found


def test_a_device_is_judged_once_however_often_it_is_asked_for() -> None:
    compiler = CountingCompiler()
    kept = census(compiler, slice_("s1", ["a", "b"], on="n1"))
    for _ in range(3):
        kept.fits(wish())

    assert compiler.asked == ["gpu.example.com/n1/a", "gpu.example.com/n1/b"]


def test_only_slices_that_changed_are_judged_anew() -> None:
    compiler = CountingCompiler()
    stays = slice_("s1", ["a"], on="n1")
    kept = census(compiler, stays, slice_("s2", ["b"], on="n2"))
    kept.fits(wish())
    compiler.asked.clear()
    kept.slices_changed([stays, slice_("s2", ["b", "c"], on="n2")])
    found = kept.fits(wish())

    assert compiler.asked == ["gpu.example.com/n2/b", "gpu.example.com/n2/c"]
    assert found.node_names == ("n1", "n2")


def test_a_class_that_changed_changes_the_answers() -> None:
    kept = census(ToyCompiler(), slice_("s1", ["a:x", "b:y"], on="n1"))
    kept.fits(wish())
    kept.classes_changed({"gpu": device_class("gpu", "model=y")})

    assert [str(device) for device in kept.fits(wish()).on("n1")[0].usable] == ["gpu.example.com/n1/b"]


def test_a_tainted_device_matches_but_is_not_usable() -> None:
    taints = [{"key": "broken", "value": "yes", "effect": "NoExecute"}]
    kept = census(ToyCompiler(), slice_("s1", [{"name": "a", "taints": taints}], on="n1"))
    fit = kept.fits(wish()).on("n1")[0]

    assert (fit.usable, fit.matching) == ((), 1)
    assert [item.reason for item in fit.rejected] == ["tainted broken=yes:NoExecute"]


def test_taints_do_not_matter_where_kubernetes_ignores_them_or_they_are_our_mark() -> None:
    """Alloc T-1."""
    broken = {"name": "a", "taints": [{"key": "broken", "effect": "NoSchedule"}]}
    ours = {"name": "b", "taints": [{"key": "ours", "effect": "NoSchedule"}]}
    off = census(ToyCompiler(), slice_("s1", [broken], on="n1"), features=Features())
    marked = census(ToyCompiler(), slice_("s1", [ours], on="n1"))

    assert len(off.fits(wish()).on("n1")[0].usable) == 1
    assert len(marked.fits(wish()).on("n1")[0].usable) == 1


def test_a_device_that_cannot_be_judged_counts_as_usable_so_that_the_allocator_is_asked() -> None:
    kept = census(ToyCompiler(), slice_("s1", ["a"], on="n1"))
    fit = kept.fits(wish("fail")).on("n1")[0]

    assert (len(fit.usable), fit.unclear, fit.matching) == (1, 1, 0)
    assert "no such key" in str(fit.error)


def test_slices_without_a_matching_device_are_kept_for_figures_only() -> None:
    found = census(ToyCompiler(), slice_("s1", ["a:x"], on="n1")).fits(wish("model=y"))

    assert (list(found.by_slice), found.node_names, list(found.pools)) == (["s1"], (), [])


def test_old_wishes_are_forgotten() -> None:
    compiler = CountingCompiler()
    kept = census(compiler, slice_("s1", ["a:x"], on="n1"))
    for index in range(MAX_WISHES + 1):
        kept.fits(wish(f"model={index}"))
    compiler.asked.clear()
    kept.fits(wish(f"model={MAX_WISHES}"))
    kept.fits(wish("model=0"))

    assert len(compiler.asked) == 2


def test_what_was_judged_before_the_work_ended_is_not_judged_again() -> None:
    compiler = CountingCompiler()
    kept = census(compiler, *(slice_(f"s{number}", ["a:x", "b:y"], on="n1") for number in range(5)))
    looks = 0
    for looks in range(1, 10):  # noqa: B007 -- how many it took is what is asked
        compiler.meter.allow(2 * JUDGING + 1)
        try:
            found = kept.fits(wish("model=x"))
            break
        except WorkLimitReached:
            continue
    assert looks == 3
    assert len(compiler.asked) == 5 * 2 * 2, "each of two devices once by the class, once by the request"
    assert sum(fit.matching for fit in found.by_slice.values()) == 5


def test_an_unfinished_census_is_no_answer() -> None:
    compiler = CountingCompiler()
    kept = census(compiler, *(slice_(f"s{number}", ["a:x"], on="n1") for number in range(3)))
    for allowed in (1, 1):
        compiler.meter.allow(allowed)
        with pytest.raises(WorkLimitReached):
            kept.fits(wish("model=x"))


def test_a_census_of_many_devices_remembers_fewer_wishes() -> None:
    compiler = CountingCompiler()
    kept = census(compiler, slice_("s1", ["a:x"], on="n1"))
    kept._room = 2
    for text in ("x", "y", "z"):
        kept.fits(wish(f"model={text}"))
    assert len(kept._answers) == 2
