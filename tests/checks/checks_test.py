#!/usr/bin/env python3
"""The checks of the tree can fail: each is given a small bad tree and must name what is wrong with it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent.parent / "tools"
sys.path.insert(0, str(TOOLS))
from cpp_source import code_only, functions  # noqa: E402

LAYERS = 'base = []\nengine = ["base"]\nio = ["base"]\n[deterministic]\nlayers = ["engine"]\n'
HEADER = "// What this is.\n#pragma once\n"


class Tree(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="berth-checks-"))
        self.addCleanup(shutil.rmtree, self.root)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_check(self, name: str) -> tuple[int, str]:
        command = [sys.executable, str(TOOLS / f"check_{name}.py"), "--root", str(self.root)]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def assert_finds(self, check: str, *wanted: str) -> None:
        status, output = self.run_check(check)
        self.assertEqual(status, 1, output)
        for text in wanted:
            self.assertIn(text, output)

    def assert_clean(self, check: str) -> None:
        status, output = self.run_check(check)
        self.assertEqual(status, 0, output)


class Layers(Tree):
    def setUp(self):
        super().setUp()
        self.write("layers.toml", LAYERS)
        self.write("src/base/result.h", HEADER)
        self.write("src/io/http.h", HEADER + '#include "base/result.h"\n')

    def test_a_tree_that_keeps_the_rules_is_clean(self):
        self.write("src/engine/state.cc", '#include "base/result.h"\nint state() { return 0; }\n')
        self.assert_clean("layers")

    def test_an_include_against_the_layers_is_found(self):
        self.write("src/engine/state.cc", '\n#include "io/http.h"\n')
        self.assert_finds("layers", "src/engine/state.cc:2: engine may not include io")

    def test_a_folder_without_a_layer_is_found(self):
        self.write("src/misc/x.cc", "")
        self.assert_finds("layers", "src/misc: no such layer")

    def test_a_cycle_in_the_rules_is_found(self):
        self.write("layers.toml", 'base = ["io"]\nio = ["base"]\n')
        self.assert_finds("layers", "a cycle: base -> io -> base")

    def test_headers_that_include_each_other_are_found(self):
        self.write("src/base/a.h", HEADER + '#include "base/b.h"\n')
        self.write("src/base/b.h", HEADER + '#include "base/a.h"\n')
        self.assert_finds("layers", "base/a.h -> base/b.h -> base/a.h")

    def test_an_include_by_file_name_alone_is_found(self):
        self.write("src/base/result.cc", '#include "result.h"\n')
        self.assert_finds("layers", 'include "result.h" by its path from src/')

    def test_what_deterministic_layers_must_not_use_is_found(self):
        for code in (
            "auto now = std::chrono::steady_clock::now();", "int x = std::rand();", "std::random_device seed;",
            'auto* home = getenv("HOME");', "std::thread worker;", "std::mutex lock;", "auto now = time(nullptr);",
            "#include <sys/socket.h>", "#include <chrono>",
        ):
            with self.subTest(code):
                self.write("src/engine/bad.cc", code + "\n")
                self.assert_finds("layers", "src/engine/bad.cc:1:", "engine must stay deterministic")
                (self.root / "src/engine/bad.cc").rename(self.root / "src/io/fine.cc")
                self.assert_clean("layers")

    def test_words_in_comments_and_strings_are_not_code(self):
        self.write("src/engine/state.cc", '// std::thread and rand()\nconst char* k = "std::mutex";\n')
        self.assert_clean("layers")

    def test_iteration_over_a_hash_container_is_found_unless_excused(self):
        self.write("src/engine/state.h", HEADER + "struct S { absl::flat_hash_map<int, int> pods_; };\n")
        self.write("src/engine/state.cc", "void f(S& s) {\n  for (auto& [id, pod] : s.pods_) use(id);\n}\n")
        self.assert_finds("layers", "src/engine/state.cc:2: 'pods_' is a hash container")
        self.write("src/engine/state.cc",
                   "void f(S& s) {\n  // deterministic: a sum\n  for (auto& [id, pod] : s.pods_) use(id);\n}\n")
        self.assert_clean("layers")


class Sizes(Tree):
    def long_function(self, lines: int) -> str:
        return "void f() {\n" + "  g();\n" * (lines - 2) + "}\n"

    def test_small_things_are_clean(self):
        self.write("src/base/a.h", HEADER)
        self.write("src/base/a.cc", self.long_function(70))
        self.assert_clean("sizes")

    def test_a_long_function_is_found(self):
        self.write("src/base/a.cc", self.long_function(71))
        self.assert_finds("sizes", "src/base/a.cc:1: f() is a function of 71 lines")

    def test_a_long_file_and_a_long_header_are_found(self):
        self.write("src/base/a.cc", "int x;\n" * 401)
        self.write("src/base/a.h", HEADER + "int y();\n" * 200)
        self.assert_finds("sizes", "a source file of 401 lines", "a header of 202 lines")

    def test_a_header_without_a_word_is_found(self):
        self.write("src/base/a.h", "\n#pragma once\n")
        self.assert_finds("sizes", "src/base/a.h:1: begin with a comment")

    def test_an_exception_has_a_reason_and_goes_when_it_is_not_needed(self):
        self.write("src/base/a.cc", self.long_function(80))
        self.write("tools/size_exceptions.toml", '"src/base/a.cc#f" = {lines = 80, reason = "a table"}\n')
        self.assert_clean("sizes")
        self.write("tools/size_exceptions.toml", '"src/base/a.cc#f" = {lines = 80}\n')
        self.assert_finds("sizes", "needs lines = N and reason")
        self.write("src/base/a.cc", self.long_function(10))
        self.assert_finds("sizes", "remove the entry")

    def test_a_long_python_function_is_found(self):
        self.write("tools/a.py", "def f():\n" + "    pass\n" * 70)
        self.assert_finds("sizes", "f() is a function of 71 lines")


class Docs(Tree):
    def setUp(self):
        super().setUp()
        self.write("src/base/a.h", HEADER + "class Txn {\n  void commit();\n};\n// rollback() is told elsewhere\n")
        self.write("other.md", "# The door\n")

    def test_links_that_lead_somewhere_are_clean(self):
        self.write("docs/a.md", "[a](../src/base/a.h) [b](../src/base/a.h#commit) [c](../other.md#the-door)\n"
                   "`src/base/a.h#Txn` [d](https://example.org/x) [e](#here)\n\n# Here\n")
        self.assert_clean("docs")

    def test_dead_links_are_found(self):
        for link, wanted in (
            ("[a](../src/base/gone.h)", "there is no ../src/base/gone.h"),
            ("[a](../src/base/a.h#rollback)", "nothing that is called rollback"),
            ("`src/base/a.h#begin`", "nothing that is called begin"),
            ("[a](../other.md#window)", "no heading #window"),
            ("[a]\n\n[a]: gone.md", "there is no gone.md"),
        ):
            with self.subTest(link):
                self.write("docs/a.md", f"# A\n\n{link}\n")
                self.assert_finds("docs", "docs/a.md:", wanted)

    def test_links_in_code_are_not_links(self):
        self.write("docs/a.md", "```\n[a](gone.md)\n```\n`[b](gone.md)`\n")
        self.assert_clean("docs")


class Elf(Tree):
    def check(self, *flags: str) -> tuple[int, str]:
        self.write("a.c", '#include <stdio.h>\n#include <string.h>\nint main(int c, char** v) { char b[64]; '
                   'strcpy(b, v[0]); return puts(b) + c; }\n')
        binary = self.root / "a"
        subprocess.run(["gcc", "-O2", *flags, "-o", binary, self.root / "a.c"], check=True, capture_output=True)
        done = subprocess.run([sys.executable, TOOLS / "check_elf.py", binary], capture_output=True, text=True)
        return done.returncode, done.stdout

    @unittest.skipUnless(shutil.which("gcc") and shutil.which("readelf"), "needs gcc and readelf")
    def test_a_hardened_binary_is_clean_and_a_soft_one_is_not(self):
        hard = ("-fPIE", "-pie", "-D_FORTIFY_SOURCE=2", "-fstack-protector-strong", "-Wl,-z,relro,-z,now,-z,noexecstack")
        self.assertEqual(self.check(*hard)[0], 0)
        status, output = self.check("-fno-pie", "-no-pie", "-U_FORTIFY_SOURCE", "-fno-stack-protector",
                                    "-Wl,-z,norelro,-z,lazy,-z,execstack")
        self.assertEqual(status, 1)
        for what in ("position-independent", "RELRO", "relocations", "stack is executable", "protector", "FORTIFY"):
            self.assertIn(what, output)


class Reading(unittest.TestCase):
    def test_functions_are_found_with_their_lines(self):
        text = (
            "namespace a {\nstruct S {\n  S() : x_{1}, y_(2) {\n    f();\n  }\n  int get() const { return x_; }\n};\n"
            "constexpr int kTable[] = {1, 2};\nstatic auto g(int x)\n    -> int {\n  if (x) { return 1; }\n  return 0;\n}\n}\n"
        )
        self.assertEqual([(f.name, f.first_line, f.last_line) for f in functions(text)],
                         [("S", 3, 5), ("get", 6, 6), ("g", 9, 13)])

    def test_literals_and_comments_go_and_lines_stay(self):
        text = 'int x = 1\'000; // {\nauto y = R"(\n{)"; char c = \'{\'; /* {\n */ f("{");\n'
        self.assertEqual(code_only(text).count("\n"), text.count("\n"))
        self.assertNotIn("{", code_only(text))
        self.assertIn("1'000", code_only(text))


if __name__ == "__main__":
    unittest.main()
