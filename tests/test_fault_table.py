#!/usr/bin/env python3
"""faults.md has each fault once, and what it names is there: test cases in their files, sentences in the sources."""
# label: quick
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
ROW = re.compile(r"^\| (F\d\d) \| (.+) \| (.+) \|$", re.MULTILINE)
NAMED = re.compile(r"(?P<refused>refused by )?(?P<file>[\w/]+\.\w+) (?:\"(?P<words>[^\"]+)\"|(?P<function>\w+)\(\))")


def missing(cell):
    """What a cell names that is not there, and what is left of it beside names."""
    lacks = [re.sub(r"[,\s]", "", NAMED.sub("", cell))]
    for named in NAMED.finditer(cell):
        path = (ROOT if named["refused"] else TESTS) / named["file"]
        words = (named["words"] if named["refused"] else f'TEST_CASE("{named["words"]}"' if named["words"] else
                 f"def {named['function']}(")
        if not path.exists() or words not in path.read_text():
            lacks.append(named[0])
    return [lack for lack in lacks if lack]


class Faults(unittest.TestCase):
    def test_each_fault_is_there_once_and_its_tests_are_there(self):
        rows = ROW.findall((TESTS / "faults.md").read_text())
        self.assertEqual([fault for fault, _, _ in rows], [f"F{n:02}" for n in range(1, 41)])
        for fault, _, cell in rows:
            self.assertEqual(missing(cell), [], fault)
            self.assertTrue(NAMED.search(cell), fault)

    def test_numbers_in_tests_are_of_the_table(self):
        """A test case that is named after a fault stands in its row."""
        rows = {fault: cell for fault, _, cell in ROW.findall((TESTS / "faults.md").read_text())}
        for path in TESTS.glob("test_*faults*.cpp"):
            for case in re.findall(r'TEST_CASE\("(F\d\d[^"]*)"', path.read_text()):
                for fault in re.findall(r"F\d\d", case.partition(":")[0]):
                    self.assertIn(f'"{case}"', rows[fault])

    def test_what_is_not_there_is_seen(self):
        self.assertEqual(missing('test_check.cpp "no such case"'), ['test_check.cpp "no such case"'])
        self.assertEqual(missing("test_nothing.py test_forward()"), ["test_nothing.py test_forward()"])
        self.assertEqual(missing('refused by cuda/ptx/launch.hpp "no such sentence"'),
                         ['refused by cuda/ptx/launch.hpp "no such sentence"'])
        self.assertEqual(missing("by hand"), ["byhand"])


if __name__ == "__main__":
    unittest.main()
