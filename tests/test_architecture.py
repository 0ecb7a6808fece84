"""Imports follow the map of docs/architecture.md; read with `ast`, nothing is imported."""

import ast
from pathlib import Path

import pytest

LEAVES = {
    "collector.amounts",
    "collector.limits",
    "collector.masks",
    "collector.plain",
    "collector.errors",
    "collector.clock",
    "collector.losses",
    "collector.memory",
    "collector.words",
    "collector.ntstatus",
    "collector.afdcodes",
    "collector.sockaddr",
    "collector.recording",
    "collector.room",
}

# Each row: what a module (or every module of a package, with a dot at the end) may import besides the leaves and its own package.
# The longest matching row counts.
MAP: dict[str, tuple[str, ...]] = {
    "collector": ("collector.api",),
    "collector.api": ("collector.",),
    "collector.retention": (),
    "collector.amounts": (),
    "collector.errors": (),
    "collector.clock": (),
    "collector.losses": (),
    "collector.memory": (),
    "collector.words": (),
    "collector.ntstatus": (),
    "collector.afdcodes": (),
    "collector.sockaddr": (),
    "collector.recording": (),
    "collector.room": (),
    "collector.limits": (),
    "collector.masks": (),
    "collector.plain": (),
    "collector.raw": (),
    "collector.source": (),
    "collector.schema": ("collector.raw",),
    "collector.extended": ("collector.raw", "collector.schema"),
    "collector.readers.": ("collector.source", "collector.raw"),
    "collector.events.": ("collector.schema",),
    "collector.embedded_fields": ("collector.schema",),
    "collector.embedded": ("collector.schema", "collector.embedded_fields"),
    "collector.layout_fields": ("collector.schema",),
    "collector.layout": ("collector.schema", "collector.layout_fields"),
    "collector.decoder": (
        "collector.schema",
        "collector.raw",
        "collector.events.",
        "collector.embedded",
        "collector.layout",
        "collector.layout_fields",
    ),
    "collector.provider_names": ("collector.raw", "collector.extended"),
    "collector.inventory": ("collector.raw", "collector.schema", "collector.events.", "collector.model.rows", "collector.provider_names"),
    "collector.inspect": (
        "collector.raw",
        "collector.schema",
        "collector.source",
        "collector.readers.",
        "collector.inventory",
        "collector.decoder",
        "collector.embedded",
    ),
    "collector.problems": ("collector.raw", "collector.schema", "collector.inventory"),
    "collector.model.": (
        "collector.raw",
        "collector.schema",
        "collector.extended",
        "collector.store.tables",
        "collector.store.evidence",
    ),
    "collector.store.tables": (),
    "collector.store.evidence": ("collector.store.tables",),
    "collector.store.": ("collector.store.", "collector.model.block", "collector.store.tables"),
    "collector.export.": ("collector.store.", "collector.model.", "collector.problems"),
    "collector.symbols.": (),
    "collector.naming": ("collector.symbols.", "collector.store."),
    "collector.etlwriter.": ("collector.schema", "collector.raw", "collector.events."),
    "collector.sample.": ("collector.etlwriter.", "collector.events.", "collector.schema", "collector.raw"),
    "collector.packages.": ("collector.source", "collector.readers.", "collector.texts."),
    "collector.texts.": (
        "collector.source",
        "collector.raw",
        "collector.schema",
        "collector.events.",
        "collector.provider_names",
        "collector.etlwriter.",
        "collector.readers.",
    ),
    "collector.together": ("collector.source", "collector.raw", "collector.readers.", "collector.joining"),
    "collector.joining": ("collector.source", "collector.raw", "collector.readers.", "collector.etlwriter."),
    "collector.record.": (
        "collector.source",
        "collector.raw",
        "collector.schema",
        "collector.events.",
        "collector.etlwriter.",
        "collector.readers.",
        "collector.joining",
    ),
    "collector.gate": ("collector.stages",),
    "collector.stages": ("collector.",),
    "collector.pipeline": ("collector.",),
    "collector.follow": ("collector.",),
    "collector.collecting": ("collector.",),
    "collector.fleet.": ("collector.",),
    "collector.dashboard": (),
    "collector.sending": ("collector.dashboard", "collector.source"),
    "collector.watch": ("collector.source", "collector.readers.", "collector.packages."),
    "collector.verbs.": ("collector.",),
    "collector.cli": ("collector.",),
    "app.settings": ("app.proxy",),
    "app.proxy": (),
    "app.clockface": (),
    "app.format": ("app.clockface",),
    "app.filters": ("app.format", "app.links", "app.clockface"),
    "app.queries.": (
        "collector.store.tables",
        "collector.store.evidence",
        "app.filters",
        "app.links",
        "app.page",
        "app.paging",
        "app.planning",
        "app.sort_groups",
        "app.keyset",
        "app.format",
        "app.recording",
    ),
    "app.charts.": ("app.queries.", "app.format", "app.clockface"),
    "app.report": ("app.assets", "app.charts.", "app.format", "app.page"),
    "app.reporting": ("app.main", "app.settings"),
    "app.views.": ("app.queries.", "app.charts.", "app.", "collector.store.engine", "collector.store.stores"),
    "app.cli": ("app.", "collector."),
    "app.": ("app.", "collector.store.engine", "collector.store.stores", "collector.store.tables"),
}

APP_ONLY_SEES = {"collector.store.tables", "collector.store.evidence", "collector.store.engine", "collector.store.stores"}


def modules(root: Path) -> dict[str, Path]:
    """Every module of the two packages by dotted name."""
    found = {}
    for package in ("app", "collector"):
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """Names of our own modules that a file imports, also inside functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            for alias in node.names:
                deeper = f"{node.module}.{alias.name}"
                names.add(deeper if deeper in known else node.module)
    return {name for name in names if name.split(".")[0] in ("app", "collector")}


def row_of(name: str) -> str | None:
    """The longest row of the map that covers a module."""
    rows = [row for row in MAP if name == row or (row.endswith(".") and (name + ".").startswith(row))]
    return max(rows, key=len, default=None)


def allows(pattern: str, name: str) -> bool:
    return name == pattern or (pattern.endswith(".") and (name + ".").startswith(pattern))


def test_imports_follow_the_map(project_root: Path) -> None:
    known = modules(project_root)
    upward = []
    for name, path in known.items():
        row = row_of(name)
        if row is None:
            upward.append(f"{name} has no row in the map")
            continue
        own = row if row.endswith(".") and row not in ("app.", "collector.") else None
        for target in sorted(imports(path, known)):
            if target in LEAVES or (own and allows(own, target)) or any(allows(pattern, target) for pattern in MAP[row]):
                continue
            upward.append(f"{name} imports {target}")
    assert upward == []


def test_the_app_sees_the_collector_through_the_database_alone(project_root: Path) -> None:
    known = modules(project_root)
    seen = {
        (name, target)
        for name, path in known.items()
        if name.startswith("app.") and name != "app.cli"
        for target in imports(path, known)
        if target.startswith("collector") and target not in LEAVES | APP_ONLY_SEES
    }
    assert seen == set()


def test_the_collector_does_not_know_the_app(project_root: Path) -> None:
    known = modules(project_root)
    assert {
        name for name, path in known.items() if name.startswith("collector") and any(t.startswith("app") for t in imports(path, known))
    } == set()


def test_every_module_says_its_reason_and_its_names(project_root: Path) -> None:
    silent = []
    for name, path in modules(project_root).items():
        text = path.read_text(encoding="utf-8")
        if path.name == "__init__.py" and not text.strip():
            continue
        tree = ast.parse(text)
        if not ast.get_docstring(tree):
            silent.append(f"{name}: no docstring")
        assigned = {t.id for node in tree.body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)}
        if "__all__" not in assigned and path.name != "__main__.py":
            silent.append(f"{name}: no __all__")
    assert silent == []


@pytest.mark.parametrize("word", ["utils", "helpers", "common", "base"])
def test_no_module_is_named_for_nothing(project_root: Path, word: str) -> None:
    assert [name for name in modules(project_root) if name.split(".")[-1] == word] == []
