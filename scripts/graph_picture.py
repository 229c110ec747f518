"""Draws docs/images/graph.svg: the program and the schedule of section "A picture" of docs/schedules.md.

    python3 scripts/graph_picture.py target/release/tilewright
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main(tilewright: str) -> None:
    tilewright = str(pathlib.Path(tilewright).resolve())
    section = (ROOT / "docs/schedules.md").read_text().split("### A picture\n")[1].split("\n## ")[0]
    blocks = {kind: text for kind, text in re.findall(r"```(tw|sched)\n(.*?)```", section, re.DOTALL)}
    command = re.search(r"^tilewright (show .*--schedule .*) > ", section, re.MULTILINE)[1]
    with tempfile.TemporaryDirectory() as folder:
        for kind, text in blocks.items():
            (pathlib.Path(folder) / f"sharpen.{kind}").write_text(text)
        drawn = subprocess.run([tilewright, *command.split()], cwd=folder, check=True, stdout=subprocess.PIPE)
    (ROOT / "docs/images/graph.svg").write_bytes(drawn.stdout)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
