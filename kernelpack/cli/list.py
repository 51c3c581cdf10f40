"""`kernelpack list`: the variants that would be built."""

from pathlib import Path

import rich_click as click

from kernelpack.cli import choices, console
from kernelpack.manifest.budgets import check_budgets
from kernelpack.manifest.expand import Exclusion, excluded, expand
from kernelpack.manifest.schema import load
from kernelpack.spec.counted import counted
from kernelpack.spec.filter import nothing_matches, parse_filter


@click.command(
    "list", epilog=choices.examples("kernelpack list manifests/lora_shrink_qkv.yaml --explain")
)
@choices.manifests
@choices.kernels
@choices.targets
@choices.keep
@click.option(
    "--explain", is_flag=True, help="Also count the combinations that are not built, by reason."
)
@choices.as_json
def command(
    manifests: tuple[Path, ...],
    kernels: tuple[Path, ...],
    targets: tuple[str, ...],
    keep: str,
    explain: bool,
    as_json: bool,
) -> None:
    """Show the variants that would be built, or why a combination is not.

    Nothing is compiled. Shared and tensor memory are checked against each variant's budget as far
    as they are known before. `--json` names every combination that is not built.
    """
    wanted, keeps = choices.arches(targets), parse_filter(keep)
    loaded = [load(path) for path in choices.manifest_paths(manifests, kernels)]
    expanded = [v for m in loaded for v in expand(m, wanted)]
    exclusions = [e for m in loaded for e in excluded(m, wanted)] if explain else []
    variants = [v for v in expanded if keeps(v.id)]
    lost = {combination(e): e.reason for e in exclusions if keeps(combination(e))}
    for manifest in loaded:
        if wanted and not set(wanted) & set(manifest.targets):
            names = ", ".join(map(str, manifest.targets))
            console.say(f"{manifest.kernel} is not for {' or '.join(targets)}: it is for {names}")
    if expanded and not (variants or lost):
        raise nothing_matches(keep, [v.id for v in expanded])
    if as_json:
        check_budgets(variants)  # an error is all that is printed then
        console.print_json({"variants": [v.id for v in variants], "excluded": lost})
    else:
        _tell([v.id for v in variants], lost, explain=explain)
        check_budgets(variants)


def combination(exclusion: Exclusion) -> str:
    """The name the variant would have had."""
    axes = "".join(f",{name.lower()}={value}" for name, value in exclusion.axes)
    return f"{exclusion.kernel}[arch={exclusion.arch}{axes}]"


def _by_reason(lost: dict[str, str]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name, reason in lost.items():
        names.setdefault(reason, []).append(name)
    return names


def _tell(ids: list[str], lost: dict[str, str], *, explain: bool) -> None:
    for variant_id in ids:
        console.show(variant_id)
    for reason, names in _by_reason(lost).items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        console.show(f"not {names[0]}{more}: {reason}")
    told = counted(len(ids), "variant")
    console.say(told + (f", {len(lost)} excluded" if explain else ""))
