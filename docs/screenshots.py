"""Takes the pictures of docs/screenshots from the sample trace: `make screenshots`, where Chromium is installed."""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "screenshots"
SHAPES = ((1280, 900, "light"), (1280, 900, "dark"), (390, 800, "light"), (390, 800, "dark"))
BOTH_THEMES = ("overview", "socket")
"""Pages shown in every shape; the others wide and light, narrow and dark."""


def main() -> int:
    """Write every picture anew."""
    sys.path.insert(0, str(ROOT))
    from playwright.sync_api import sync_playwright

    from collector.sample import write_sample
    from tests.browser import chromium_path, launch, serving
    from tests.build.imported import collect

    chromium = chromium_path()
    if chromium is None:
        sys.stderr.write("Chromium is not installed.\n")
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_sample(folder / "sample.etl")
        sample = collect(folder / "sample.etl", folder)
        reset = sample.rows("SELECT socket FROM v_aborts WHERE reason = 4 AND on_listener = 0 ORDER BY t_ns")[0][0]
        busy = sample.rows("SELECT socket FROM v_operations GROUP BY socket ORDER BY count(*) DESC")[0][0]
        process = sample.rows("SELECT process FROM v_allocations GROUP BY process ORDER BY count(*) DESC")[0][0]
        pages = {
            "overview": "",
            "sockets": "/sockets",
            "socket": f"/sockets/{reset}",
            "busy-socket": f"/sockets/{busy}",
            "aborts": "/aborts",
            "overlaps": "/overlaps",
            "heap": f"/heap/{process}",
            "trust": "/trust",
        }
        PICTURES.mkdir(exist_ok=True)
        with serving(sample.folder.root) as base, sync_playwright() as playwright:
            browser = launch(playwright, chromium)
            for width, height, scheme in SHAPES:
                context = browser.new_context(
                    viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light"
                )
                for page_name, path in pages.items():
                    if page_name not in BOTH_THEMES and (width, scheme) not in ((1280, "light"), (390, "dark")):
                        continue
                    page = context.new_page()
                    page.goto(f"{base}/t/{sample.report.key}{path}", wait_until="networkidle")
                    page.screenshot(path=PICTURES / f"{page_name}-{width}-{scheme}.png")
                    page.close()
                context.close()
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
