"""What the project is made of besides its own code: pinned versions, licences, known vulnerabilities.

    python .ci/supply.py constraints     writes constraints.txt from the packages of this environment
    python .ci/supply.py licences        writes docs/licences.md from the same
    python .ci/supply.py audit           asks a vulnerability service about constraints.txt (needs pip-audit beside it)
    python .ci/supply.py sbom FILE       says whether a CycloneDX list of parts has all that sockscope needs to run

Exit status: 0 done, or nothing could be asked (it says so); 1 a vulnerability that nobody has explained, or a part that is not listed;
2 wrong usage.
"""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
LICENCES = ROOT / "docs" / "licences.md"

# Vulnerabilities that do not concern this project: identifier → why. Each entry is shown with its reason by every audit.
EXPLAINED: dict[str, str] = {}


def main(words: list[str]) -> int:
    """Run one of the four."""
    match words:
        case ["constraints"]:
            head = "# Versions that the tests ran with. Written by `make constraints`; used by make and .ci/run.\n"
            CONSTRAINTS.write_text(head + "".join(f"{name}=={version}\n" for name, version in closure().items()), encoding="utf-8")
            return 0
        case ["licences"]:
            LICENCES.write_text(licences_page(), encoding="utf-8")
            return 0
        case ["audit"]:
            return audit()
        case ["sbom", file]:
            return sbom(json.loads(Path(file).read_text(encoding="utf-8")))
    print(__doc__, file=sys.stderr)
    return 2


def closure(*, is_plain: bool = False) -> dict[str, str]:
    """Names and versions of everything that the project's requirements bring into this environment, all extras and the build included.

    With `is_plain` only what it needs to run.
    """
    try:
        from packaging.requirements import Requirement
    except ModuleNotFoundError:  # a plain installation has the copy of pip alone
        from pip._vendor.packaging.requirements import Requirement

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = [*settings["project"]["dependencies"]]
    if not is_plain:
        declared += settings["build-system"]["requires"]
        for more in settings["project"].get("optional-dependencies", {}).values():
            declared += more
    found: dict[str, str] = {}
    open_ = [(Requirement(text), "") for text in declared]
    while open_:
        wanted, extra = open_.pop()
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
            continue
        name = canonical(wanted.name)
        try:
            there = distribution(name)
        except PackageNotFoundError:
            print(f"{name} is declared and not installed here: it is not pinned.", file=sys.stderr)
            continue
        is_new = name not in found
        found[name] = there.version
        for text in there.requires or ():
            needed = Requirement(text)
            if canonical(needed.name) not in found or needed.extras:
                open_ += [(needed, one) for one in (("", *wanted.extras) if is_new else wanted.extras)]
    return dict(sorted(found.items()))


def licences_page() -> str:
    """A table of the pinned packages with the licence that each one's own metadata names."""
    lines = [
        "<!-- written by `make licences` -->",
        "# Licences",
        "",
        "Everything that is installed with sockscope or used to build and test it, with the licence that its own metadata names.",
        "",
        "| package | version | licence |",
        "| --- | --- | --- |",
    ]
    lines += [f"| {name} | {version} | {licence_of(name)} |" for name, version in closure().items()]
    return "\n".join(lines) + "\n"


def licence_of(name: str) -> str:
    """The SPDX expression, else the classifiers, else the first line of the free text."""
    metadata = distribution(name).metadata
    expression = metadata["License-Expression"]
    if expression:
        return str(expression)
    classified = [text.rpartition(" :: ")[2] for text in metadata.get_all("Classifier") or () if text.startswith("License :: ")]
    free = str(metadata["License"] or "").strip().partition("\n")[0]
    kept = [file for file in distribution(name).files or () if file.name.upper().startswith("LICEN")]
    first = kept[0].read_text().strip().partition("\n")[0].strip() if kept else ""
    return ", ".join(classified) or free[:60] or first[:60] or "see the package"


def audit() -> int:
    """Ask about each pinned version; what could not be asked about is named, and never passes for clean."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(CONSTRAINTS), "--no-deps", "--disable-pip", "--format", "json",
               "--progress-spinner", "off", "--timeout", "20"]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        answers = json.loads(done.stdout)["dependencies"]
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        print(f"not checked: the service of known vulnerabilities gave no answer ({type(error).__name__}). Run this again with a network.")
        return 0
    skipped = [one["name"] for one in answers if "skip_reason" in one]
    checked = [one for one in answers if "skip_reason" not in one]
    unexplained = 0
    for one in checked:
        for found in one["vulns"]:
            names = {found["id"], *found.get("aliases", ())}
            reason = next((EXPLAINED[name] for name in sorted(names) if name in EXPLAINED), None)
            unexplained += reason is None
            better = f"; mended in {', '.join(found['fix_versions'])}" if found.get("fix_versions") else ""
            print(f"{one['name']} {one['version']}: {found['id']}: {f'explained: {reason}' if reason else f'NOT EXPLAINED{better}'}")
    if skipped:
        print(f"not checked: {len(skipped)} of {len(answers)} packages are unknown to the service, or it cannot be reached from here.")
    print(f"{len(checked)} packages checked, {unexplained} vulnerabilities without an explanation.")
    return 1 if unexplained else 0


def sbom(document: dict[str, Any]) -> int:  # Any: JSON
    """Compare a list of parts with what a plain installation has; each difference is a line."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    about = document.get("metadata", {}).get("component", {})
    wrong = []
    if (document.get("bomFormat"), about.get("name"), about.get("version")) != ("CycloneDX", project["name"], project["version"]):
        wrong.append(f"it is no CycloneDX document about {project['name']} {project['version']}")
    listed = {canonical(part["name"]): part for part in document.get("components", ())}
    needed = closure(is_plain=True)
    for name, version in needed.items():
        part = listed.get(name, {})
        if (part.get("version"), canonical(part.get("purl", ""))) != (version, canonical(f"pkg:pypi/{name}@{version}")):
            wrong.append(f"{name} {version} is missing, or listed otherwise: {part.get('purl', 'not at all')}")
        elif not part.get("licenses"):
            wrong.append(f"{name} {version} is listed without a licence")
    for line in wrong:
        print(f"list of parts: {line}")
    print(
        f"{len(needed) - len(wrong)} of {len(needed)} packages that sockscope needs are listed, and {len(listed.keys() - needed)} others."
    )
    return 1 if wrong else 0


def canonical(name: str) -> str:
    """The one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
