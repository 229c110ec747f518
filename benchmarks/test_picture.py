"""The picture of the README shows what docs/benchmarks.md has."""

import importlib.util
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "scripts/picture.py"


def loaded():
    """Returns the script as a module."""
    spec = importlib.util.spec_from_file_location("picture", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    # Data classes look their module up by its name.
    sys.modules["picture"] = module
    spec.loader.exec_module(module)
    return module


picture = loaded()
MEASURED = picture.MEASURED.read_text(encoding="utf-8")


class Picture(unittest.TestCase):
    def test_the_committed_picture_is_up_to_date(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "overview.svg"
            subprocess.run([sys.executable, SCRIPT, file], check=True)
            up_to_date = file.read_bytes() == picture.PICTURE.read_bytes()
        self.assertTrue(up_to_date, "run `python3 scripts/picture.py` and commit docs/images/overview.svg")

    def test_a_measured_ratio_changes_the_picture(self):
        ratio = picture.measured(MEASURED)[0].find("softmax 1024x1024").ratio
        row = next(line for line in MEASURED.splitlines() if line.startswith("| softmax 1024x1024 | 2 |"))
        again = MEASURED.replace(row, row.replace(f"| {ratio:.2f} (", "| 2.99 ("))
        self.assertIn("2.99  PyTorch", picture.picture(again))

    def test_a_row_that_is_gone_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "no row that begins with 'softmax 1024x1024'"):
            picture.picture(MEASURED.replace("softmax 1024x1024", "softmax 1000x1000"))

    def test_tables_have_rows_by_column(self):
        table = "| work | ratio |\n|---|--:|\n| a | 1.5 (1–2) |\n| b | 0.5 |\n"
        rows = [{"work": "a", "ratio": "1.5 (1–2)"}, {"work": "b", "ratio": "0.5"}]
        self.assertEqual(picture.tables(f"Text.\n\n{table}\nMore.\n\n{table}"), [rows, rows])


if __name__ == "__main__":
    unittest.main()
