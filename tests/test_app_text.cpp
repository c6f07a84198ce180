// What the commands are printed with: tables, paragraphs, head comments, other programs.
#include "app/child.hpp"
#include "app/lesson.hpp"
#include "app/table.hpp"
#include "tests/catch.hpp"

using namespace flash;
using namespace flash::app;

TEST_CASE("tables align characters, not bytes", "[app]") {
  Table table;
  table.column("law", "", Table::Align::left).column("count", "elements").column("note", "", Table::Align::left);
  table.row({"4N² + 4Nd", "12"}).row({"Θ(N)", "3", "low"});
  CHECK(table.text() ==
        "law           count  note\n"
        "           elements\n"
        "4N² + 4Nd        12\n"
        "Θ(N)              3  low\n");
  CHECK(width("N²d²/M") == 6);
  CHECK(width("") == 0);
}

TEST_CASE("paragraphs break between words and keep their indent", "[app]") {
  CHECK(paragraph("Θ  ", "a bb ccc d", 8) == "Θ  a bb\n   ccc d\n");
  CHECK(paragraph("", "unbreakable", 4) == "unbreakable\n");
  CHECK(paragraph("x ", "", 10) == "x \n");
}

TEST_CASE("sizes carry their unit and three digits", "[app]") {
  CHECK(decimal_bytes(0) == "0 B");
  CHECK(decimal_bytes(999) == "999 B");
  CHECK(decimal_bytes(9'994) == "9.99 kB");
  CHECK(decimal_bytes(9'996) == "10.0 kB");
  CHECK(decimal_bytes(999'499) == "999 kB");
  CHECK(decimal_bytes(999'500) == "1.00 MB");
  CHECK(decimal_bytes(268'435'456) == "268 MB");
  CHECK(decimal_bytes(Index{32} * 4 * 65536 * 65536) == "550 GB");
  CHECK(binary_bytes(65536) == "64KiB");
  CHECK(binary_bytes(1000) == "1000");
  CHECK(times(300, 100) == "3x less");
  CHECK(times(100, 172) == "1.72x more");
  CHECK(times(7, 7) == "the same");
  CHECK(sentence("every pass") == "Every pass");
  CHECK(sentence("a logarithm") == "A logarithm");
  CHECK(sentence("e^(S − LSE) is P") == "e^(S − LSE) is P");
}

TEST_CASE("a head comment is read part by part", "[app]") {
  const std::string source =
      "// 09 title.\n// Extends 08. The change: one thing\n// on two lines.\n// Why it helps: so.\n// What it costs: "
      "that.\n"
      "// The ledger must now say: N.\n#pragma once\n// What it costs: nothing more.\n";
  const HeadComment head = parse_head_comment(source, "f.hpp");
  CHECK(head.title == "09 title.");
  CHECK(head.extends == "08");
  CHECK(head.change == "one thing on two lines.");
  CHECK(head.why == "so.");
  CHECK(head.costs == "that.");
  CHECK(head.ledger == "N.");
  CHECK_THROWS_AS(parse_head_comment("// title\n// Extends 08. The change: c.\n// Why it helps: w.\n", "f.hpp"),
                  Refused);
  CHECK_THROWS_AS(parse_head_comment("", "f.hpp"), Refused);
  CHECK_THROWS_AS(read_source("stages/no_such_file.hpp"), Refused);
  for (const Stage& stage : stages_on(Side::cpu))
    CHECK_FALSE(head_comment({&stage, Direction::forward}).extends.empty());
}

TEST_CASE("another program gets its arguments as they are", "[app]") {
  const Child echo = run_child({"printf", "%s|%s", "a b; exit 3", "$HOME"});
  CHECK(echo.started);
  CHECK(echo.status == 0);
  CHECK(echo.output == "a b; exit 3|$HOME");
  CHECK(run_child({"cat"}, "in\n").output == "in\n");
  const Child failed = run_child({"sh", "-c", "echo why >&2; exit 7"});
  CHECK(failed.status == 7);
  CHECK(failed.complaints == "why\n");
  CHECK(run_child({"sh", "-c", "kill -9 $$"}).status == 128 + 9);
  CHECK_FALSE(run_child({"/no/such/program"}).started);
}
