#include "api/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "api/yaml_text.h"
#include "base/printable.h"

namespace berth::api {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The JSON of a plain YAML document, or its first problem.
std::string json_of(const std::string& text) {
  Problems problems;
  const auto documents = read_plain_documents(text, "f.yaml", problems);
  if (!problems.empty()) return to_string(problems[0]);
  return documents.empty() ? "" : documents[0].json;
}

struct ScalarCase {
  std::string yaml;
  std::string json;
};
void PrintTo(const ScalarCase& one, std::ostream* out) { *out << one.yaml; }

class YamlScalars : public ::testing::TestWithParam<ScalarCase> {};

TEST_P(YamlScalars, AreReadAsKubernetesReadsThem) {
  EXPECT_EQ(json_of("v: " + GetParam().yaml), "{\"v\":" + GetParam().json + "}");
}

// Expected values are those of sigs.k8s.io/yaml v1.6 (YAMLToJSON).
INSTANTIATE_TEST_SUITE_P(
    Table, YamlScalars,
    ::testing::Values(ScalarCase{"yes", "true"}, ScalarCase{"No", "false"}, ScalarCase{"on", "true"},
                      ScalarCase{"OFF", "false"}, ScalarCase{"y", "true"}, ScalarCase{"n", "false"},
                      ScalarCase{"\"yes\"", "\"yes\""}, ScalarCase{"'1'", "\"1\""}, ScalarCase{"~", "null"},
                      ScalarCase{"null", "null"}, ScalarCase{"", "null"}, ScalarCase{"Null", "null"},
                      ScalarCase{"nULL", "\"nULL\""}, ScalarCase{"1", "1"}, ScalarCase{"-7", "-7"},
                      ScalarCase{"+7", "7"}, ScalarCase{"0x1F", "31"}, ScalarCase{"0o17", "15"},
                      ScalarCase{"017", "15"}, ScalarCase{"0b101", "5"}, ScalarCase{"1_000", "1000"},
                      ScalarCase{"08", "8"}, ScalarCase{"0.5", "0.5"}, ScalarCase{".5", "0.5"}, ScalarCase{"1.0", "1"},
                      ScalarCase{"1e3", "1000"}, ScalarCase{"1e400", "\"1e400\""},
                      ScalarCase{"18446744073709551615", "18446744073709551615"}, ScalarCase{"100m", "\"100m\""},
                      ScalarCase{"2001-01-01", "\"2001-01-01\""}, ScalarCase{"12:30:45", "\"12:30:45\""},
                      ScalarCase{"1.2.3", "\"1.2.3\""}, ScalarCase{"0x", "\"0x\""}, ScalarCase{"!!str 5", "\"5\""},
                      ScalarCase{"!!int 5", "5"}, ScalarCase{"|\n  a\n  b\n", "\"a\\u000ab\\u000a\""}));

TEST(Documents, KeysBecomeTheStringsThatJsonHas) {
  EXPECT_EQ(json_of("{1: a, TRUE2: b, 1.5: c, \"yes2\": d}"), R"({"1":"a","TRUE2":"b","1.5":"c","yes2":"d"})");
}

TEST(Documents, AliasesAndMergeKeysAreExpanded) {
  EXPECT_EQ(json_of("a: &x {p: 1, q: 2}\nb: *x\nc:\n  <<: *x\n  q: 3\n"),
            R"({"a":{"p":1,"q":2},"b":{"p":1,"q":2},"c":{"q":3,"p":1}})");
  EXPECT_EQ(json_of("x: &x {p: 1}\nz: &y {p: 2, r: 4}\nc:\n  <<: [*x, *y]\n"),
            R"({"x":{"p":1},"z":{"p":2,"r":4},"c":{"p":1,"r":4}})");
}

TEST(Documents, MergeKeyAfterAKeyThatItSetsIsRefused) {
  EXPECT_THAT(json_of("x: &x {p: 1}\nc:\n  p: 2\n  <<: *x\n"),
              HasSubstr("f.yaml:4: 'p' is set before the merge key '<<'"));
}

TEST(Documents, BillionLaughsIsRefused) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) text += (j == 0 ? "*a" : ", *a") + std::to_string(i - 1);
    text += "]\n";
  }
  EXPECT_THAT(json_of(text), HasSubstr("aliases expand to more than 1000000 values"));
}

TEST(Documents, LongStringsThroughAliasesAreRefused) {
  std::string text = "s: &s \"" + std::string(1 << 20, 'x') + "\"\nl: [";
  for (int i = 0; i < 1000; ++i) text += "*s,";
  EXPECT_THAT(json_of(text + "]\n"), HasSubstr("256 MiB"));
}

TEST(Documents, BillionMergesAreRefused) {
  std::string text = "a0: &a0 {x: 1}\n";
  for (int i = 1; i < 40; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    text +=
        "a" + std::to_string(i) + ": &a" + std::to_string(i) + " {<<: [" + below + ", " + below + ", " + below + "]}\n";
  }
  EXPECT_THAT(json_of(text), HasSubstr("merge keys"));
}

TEST(Documents, AnAliasToItselfIsRefused) {
  EXPECT_THAT(json_of("a: &a [*a]\n"), HasSubstr("contains an alias to itself"));
}

TEST(Documents, DepthIsBounded) {
  EXPECT_THAT(json_of(std::string(65, '[') + std::string(65, ']')), HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(json_of("a: " + std::string(63, '[') + std::string(63, ']')), HasSubstr("[[["));
  EXPECT_THAT(json_of("a: " + std::string(100000, '[')), HasSubstr("f.yaml:1: "));
  EXPECT_THAT(json_of("a: " + std::string(100000, '{')), HasSubstr("f.yaml:1: "));
  EXPECT_THAT(json_of("{\"a\": " + std::string(100000, '[') + "1"), HasSubstr("nested deeper than 64 levels"));
}

TEST(Documents, DuplicateKeysNameBothLines) {
  EXPECT_EQ(json_of("a:\n  b: 1\n  c: 2\n  b: 3\n"),
            "f.yaml:4: a.b: given twice in the same map, first on line 2; remove one of them");
  EXPECT_THAT(json_of("{\"a\": 1,\n \"\\u0061\": 2}"), HasSubstr("f.yaml:2: a: given twice"));
}

TEST(Documents, ABareKeyThatYamlReadsAsABooleanIsToldAsItIsWritten) {
  EXPECT_EQ(json_of("spec:\n  nodeSelector:\n    n: x\n"),
            "f.yaml:3: spec.nodeSelector.n: YAML reads the key n as the boolean false; put it in quotes");
  EXPECT_THAT(json_of("{a: {Yes: 1}}"), HasSubstr("f.yaml:1: a.Yes: YAML reads the key Yes as the boolean true"));
  EXPECT_EQ(json_of("{'n': 1, \"y\": 2, true: 3, !!str on: 4}"), R"({"n":1,"y":2,"true":3,"on":4})");
}

TEST(Documents, ABracketThatIsNeverClosedIsToldSo) {
  for (const char* text : {"{", "{\n", "{a", "{a: 1,", "{a: 'b}'", "{a: 1 # }\n"})
    EXPECT_THAT(json_of(text), HasSubstr("f.yaml:1: not valid YAML: the '{' that opens here is never closed")) << text;
  EXPECT_THAT(json_of("\n["), HasSubstr("f.yaml:2: not valid YAML: the '[' that opens here is never closed"));
  EXPECT_THAT(json_of("b: 1\na: {b: 1\nc: 2\n"), HasSubstr("f.yaml:2: a.b: not valid YAML: the '{' that opens here"));
  EXPECT_THAT(json_of("a: [1,\n"), HasSubstr("the '[' that opens here is never closed"));
  EXPECT_THAT(json_of("a: [\n{b: 1]\n"), HasSubstr("f.yaml:2: a[0]: not valid YAML: the '{' that opens here"));
  EXPECT_THAT(json_of("a: [\n{b: 'c}]\n"), HasSubstr("f.yaml:2: a[0]: not valid YAML: the quote that opens here"));
  EXPECT_THAT(json_of("a: {b: 1 c: 2}\n"), HasSubstr("a ',' is missing"));
}

TEST(Documents, WhatCannotBeAKeyHidesNothingElse) {
  const auto told = [](const std::string& lines) {
    Problems problems;
    EXPECT_THAT(read_plain_documents(lines + "on: 1\n", "f.yaml", problems), SizeIs(1)) << lines;
    EXPECT_THAT(problems, SizeIs(2)) << lines;
    std::string all;
    for (const Problem& problem : problems) all += to_string(problem) + "\n";
    return all;
  };
  for (const char* text :
       {"a: {? {b: [c]} : 1}\n", "a:\n  ? [it's, *x]\n  : b\n", "a: {[b]: c}\n", "a: {? &x [b] : *x}\n"})
    EXPECT_THAT(told(std::string("x: &x 1\n") + text), HasSubstr(": a: a map or list cannot be a key")) << text;
  EXPECT_THAT(told("a: {{ .Values.b }}\n"), HasSubstr("f.yaml:1: a: this looks like a template; render it first"));
  EXPECT_THAT(told("a:\n  ~: b\n"), HasSubstr("f.yaml:2: a: a key must not be missing or null"));
  EXPECT_THAT(told("a:\n  : b\n"), HasSubstr("f.yaml:2: a: a key must not be missing or null"));
  EXPECT_THAT(told("a: &a 1\nb: {*a : 2}\n"), HasSubstr("f.yaml:2: b: an alias cannot be a key"));
  EXPECT_THAT(told("a: {&a b: 1}\nc: *a\n"), HasSubstr("f.yaml:1: a.b: anchors on keys are not supported"));
  EXPECT_THAT(told("a: &a {b: [*a]}\n"), HasSubstr("f.yaml:1: a.b[0]: an anchor's value contains an alias to itself"));
  EXPECT_THAT(told("a: {<<: 5}\n"), HasSubstr("f.yaml:1: map merge requires map or sequence of maps"));
}

TEST(Documents, AnActionOfATemplateThatEndsTheDocumentIsCalledOne) {
  for (const char* text : {"a: 1\n{{- if .Values.x }}\nb: 2\n{{- end }}\n", "a:\n  {{- if .Values.x }}\n  b: 2\n",
                           "a: {b: 1}\n{{- range .Values.nodes }}\nc: {{ .name }}\n{{- end }}\n"}) {
    Problems problems;
    read_plain_documents(text, "f.yaml", problems);
    ASSERT_THAT(problems, SizeIs(1)) << text;
    EXPECT_THAT(to_string(problems[0]),
                AllOf(HasSubstr("f.yaml:2: "), HasSubstr("this looks like a template; render it first")))
        << text;
  }
}

TEST(Documents, ABrokenDocumentDoesNotHideTheOthers) {
  Problems problems;
  const auto documents = read_documents(
      "apiVersion: v1\nkind: Pod\n---\na: [\n---\napiVersion: v1\nkind: Node\n---\n- x\n---\n# nothing\n---\n",
      "f.yaml", problems);
  EXPECT_THAT(documents, SizeIs(2));
  ASSERT_THAT(problems, SizeIs(2));
  EXPECT_EQ(problems[0].line, 4);
  EXPECT_THAT(to_string(problems[1]), HasSubstr("f.yaml:9: a document must be an object"));
}

TEST(Documents, TextAfterTheEndOfADocumentIsRefused) {
  EXPECT_THAT(json_of("{a: 1},\n"), HasSubstr("something follows the end of the document"));
  EXPECT_THAT(json_of("{a: 1}\n{b: 1}\n"), HasSubstr("f.yaml:2: not valid YAML"));
  Problems problems;
  EXPECT_THAT(read_plain_documents("a: 1\n...\nb: 2\n...\n", "f", problems), SizeIs(2));
  EXPECT_THAT(problems, IsEmpty());
}

TEST(Documents, ListsBecomeTheirItems) {
  Problems problems;
  const auto documents = read_documents(
      "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod}\n- apiVersion: v1\n  kind: NodeList\n  "
      "items:\n  - metadata: {name: n1}\n",
      "f.yaml", problems);
  EXPECT_THAT(problems, IsEmpty());
  ASSERT_THAT(documents, SizeIs(2));
  EXPECT_EQ(documents[1].kind, "Node");
  EXPECT_EQ(documents[1].json, R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}})");
  EXPECT_THAT(documents[1].lines, ::testing::ElementsAre(8, 8, 8, 8, 8));
}

TEST(Documents, JsonStreamsAreRead) {
  Problems problems;
  const auto documents = read_documents(
      "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}\n{\"apiVersion\":\"v1\",\"kind\":\"Node\"}", "f.json", problems);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_THAT(documents, SizeIs(2));
}

TEST(Documents, BrokenJsonNamesItsLine) {
  Problems problems;
  read_documents("{\n \"apiVersion\": \"v1\",\n \"kind\": }\n", "f.json", problems);
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_THAT(to_string(problems[0]), HasSubstr("f.json:3: kind: not valid JSON: expected a value, found '}'"));
}

TEST(Documents, ByteOrderMarksAndWindowsLinesAreRead) {
  EXPECT_EQ(json_of("\xEF\xBB\xBF"
                    "a: 1\r\nb: x\r\n"),
            R"({"a":1,"b":"x"})");
}

TEST(Documents, ControlCharactersAndBadUtf8AreRefusedWithTheirLine) {
  EXPECT_THAT(json_of("a: 1\nb: \x1b[31m\n"), HasSubstr("f.yaml:2: control characters are not allowed (byte 0x1b)"));
  EXPECT_THAT(json_of("a: \x04 b"), HasSubstr("byte 0x04"));
  EXPECT_THAT(json_of("a: \xff"), HasSubstr("not UTF-8"));
}

TEST(Documents, ProblemsHoldNoEscapes) {
  Problems problems;
  read_documents("apiVersion: v1\nkind: Pod\n\"\\e[31mx\": 1\n\"\\e[31mx\": 2\n", "a\x1b[2Jb.yaml", problems);
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_EQ(to_string(problems[0]).find('\x1b'), std::string::npos);
}

RC_GTEST_PROP(DocumentsProperty, AnyTextIsReadWithoutACrash, (const std::string& text)) {
  Problems problems;
  for (const Document& document : read_documents(text, "f", problems)) RC_ASSERT(!document.json.empty());
}

RC_GTEST_PROP(PrintableProperty, HasNoControlCharacters, (const std::string& text)) {
  for (const char c : printable(text)) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
}

}  // namespace
}  // namespace berth::api
