#!/usr/bin/env python3
# label: quick
"""A notebook's cell is cut into the pieces that Cling takes: one kind of thing at a time."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "notebooks-cling/kernel"))
from cling_kernel.cells import is_open, pieces  # noqa: E402

# What a cell holds: # directive, d definition, b binding, s statements.
CELLS = [
    ("int f() { return 1; }\n++j;", "ds"),
    ("int f() { return 1; }\n*p = 2;\n-1", "ds"),
    ("int f() noexcept { return 1; }\nf()", "ds"),
    ("auto f(int x) -> int { return x; }\nf(1)", "ds"),
    ("[[nodiscard]] int f() { return 1; }\nf()", "ds"),
    ("void f(int a = 3, std::vector<int> v = {1, 2}) { }\nf()", "ds"),
    ("std::vector<std::pair<int, int>> f(const std::map<int, std::vector<int>>& m) { return {}; }\nf({})", "ds"),
    ("float (*pick(int i))(float) { return 0; }\nint x;", "ds"),
    ("int x = 3; int f(int y) { return y; } f(x)", "sds"),
    ("int A::f() const { return 3; }\nint x;", "ds"),
    ("X::X() : a(0), b{1} { go(); }\nint y;", "ds"),
    ("bool operator==(A a, A b) { return true; }\nint y;", "ds"),
    ("A& operator+=(A& a, int x) { return a; }\nint y;", "ds"),
    ("std::ostream& operator<<(std::ostream& o, const P& p) { return o << p.x; }\nint x;", "ds"),
    ("int operator()(int);", "s"),
    ("template <class T> T f(T x) { return x; }\nf(1)", "ds"),
    ("template <class T> requires (sizeof(T) > 1) T f(T x) { return x; }\nf(1)", "ds"),
    ("template <class T> requires requires(T a) { a + a; } T f(T x) { return x; }\nf(1)", "ds"),
    ("template <class T> concept N = requires(T a) { a + a; };\nint x;", "ds"),
    ("template <int N> struct S { int a[N]; };\nS<3> s;", "ds"),
    ("template <> int f<3>() { return 3; }\nint x;", "ds"),
    ("static inline float g(const M& a) { return a(0); }\nint x;", "ds"),
    ("struct A { int x; } a;\na.x", "ds"),
    ("struct A { int x; };\nA{1}.x + A{2}.x", "ds"),
    ("enum class E { A, B };\nint x;", "ds"),
    ("namespace a { int x; }\n++j;", "ds"),
    ('extern "C" { int f(); }\nf();', "ds"),
    ("using namespace std;\nusing V = std::vector<int>;\nV v;", "dds"),
    ("auto [a, b] = f();\na", "bs"),
    ("std::vector<int> v{1,2};\nv", "s"),
    ("int i = 1;\ni = 2;\nconst int j = i;\n++i;\nint k = 3;", "sss"),
    ("v.push_back(1);\nstd::vector<int> const w{v};\nauto& last = v.back();\nint&& r{3};", "ssss"),
    ("for (const auto& x : v) f(x);\nf(x & y);\nint j = 2;", "s"),
    ("int a[] = {1, 2};\nint b = a[0];", "s"),
    ("T t{1, {2, 3}}; t.go([](int a) { return a; });\nt", "s"),
    ("{ int y = 3; }\nint z;", "s"),
    ("auto l = [](int x) { return x; };\nl(1)", "s"),
    ("auto lam = [](auto x) { return x; };\nstd::cout << lam(4) << [&]{ return 5; }() << 1;\nlam(2)", "s"),
    ("int r = g(3, [](int x) { return x; });\nr", "s"),
    ("f(x) + [&]{ return 1; }();", "s"),
    ("if (a) { b(); } else { c(); }\nd()", "s"),
    ("if (a) b(); else c();", "s"),
    ("for (int i = 0; i < 3; ++i) { a(); }\n++j;", "s"),
    ("while (x) { }\n(f)(1);", "s"),
    ("do { a(); } while (x);\nb();", "s"),
    ("try { a(); } catch (int) { } catch (...) { }\nb();", "s"),
    ("#include <a>\n#include <b>\nint x;\n#define Y 1\nx", "##s#s"),
    ("#if A\nint x;\n#else\nint y;\n#endif\nint z;", "#s"),
    ("#if A\n#if B\n#endif\nint x;\n#endif\nint z;", "#s"),
    ("#define M(x) \\\n  x\nint q;", "#s"),
    ("#define TWO { { \nint x;", "#s"),
    ("// only a comment\n/* } */", ""),
    ("// { is no bracket\nint f() { return '{'; }  /* { */\nf()", "ds"),
    ('const char* s = R"(} ; {)"; int y = 1\'000; char c = \'}\';', "ss"),
    ('const char* s = R"x()" } )x"; int f() { return 1; }', "sd"),
    ('std::puts("\\"}{");\nint f() { return 1; }', "sd"),
]
KINDS = {"directive": "#", "definition": "d", "binding": "b", "statements": "s"}


class Cells(unittest.TestCase):
    def test_kinds(self):
        for cell, kinds in CELLS:
            with self.subTest(cell):
                self.assertEqual("".join(KINDS[piece.kind] for piece in pieces(cell)), kinds)

    def test_nothing_is_lost(self):
        for cell, _ in CELLS:
            with self.subTest(cell):
                squeezed = "".join("".join(piece.text for piece in pieces(cell)).split())
                for word in cell.split():
                    if cell.startswith("//") or word in ("//", "/*", "*/"):
                        continue
                    self.assertIn(word, squeezed)

    def test_lines(self):
        cell = "\n\nint x = 1;\n\n\nint f() { return x; }\n// said\nint y = 2;\n\nint z = 3;"
        found = pieces(cell)
        self.assertEqual([piece.line for piece in found], [3, 6, 8])
        lines = cell.split("\n")
        for piece in found:  # each line of a piece is the cell's at its place
            for n, line in enumerate(piece.text.split("\n"), piece.line):
                self.assertIn(line.strip(), lines[n - 1])

    def test_open_brackets(self):
        for cell, expected in (("f(", True), ("f()", False), ("if (a) {", True), ('"("', False), ("// {", False)):
            self.assertEqual(is_open(cell), expected, cell)


if __name__ == "__main__":
    unittest.main()
