// Bytes that no text may hold are told of, and nothing that they were part of is.
#include "api/bad_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/decode.h"

namespace berth::api {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> told(const std::string& text) {
  Problems problems;
  for (const Document& document : read_documents(text, "f.yaml", problems)) decode(document, problems);
  std::vector<std::string> out;
  for (const Problem& problem : problems) out.push_back(to_string(problem));
  return out;
}

std::string pod(const std::string& metadata, const std::string& spec = "") {
  return "apiVersion: v1\nkind: Pod\nmetadata: {" + metadata + "}\nspec: {" + spec +
         "containers: [{name: c, image: i}]}\n";
}

TEST(BadBytes, AValueThatHoldsOneIsJudgedNoFurther) {
  for (const std::string& text :
       {pod("name: \xe9"), pod("name: p\xe9"), pod("name: p, labels: {a: \xe9}"), pod("name: p", "priority: 1\xe9, "),
        pod("name: p", "restartPolicy: \xe9, "), pod("name: p", "volumes: [{name: \xe9}], "),
        pod("name: p", "tolerations: [{key: a, operator: \xe9, value: b}], "), pod("name: p", "hostNetwork: \xe9, "),
        std::string("apiVersion: v1\nkind: P\xe9"
                    "d\nmetadata: {name: p}\n"),
        std::string("apiVersion: \xe9\nkind: Pod\nmetadata: {name: p}\n"),
        std::string("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: p}\nspec: {accessModes: [\xe9], "
                    "resources: {requests: {storage: \xe9}}}\n"),
        std::string("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {capacity: {cpu: \xe9}}\n")})
    EXPECT_THAT(told(text), ElementsAre(HasSubstr("the text is not UTF-8 (byte 0xe9)"))) << text;
}

TEST(BadBytes, AKeyThatHoldsOneMayBeAnyThatIsMissing) {
  for (const std::string& text :
       {pod("n\xe4me: p"), pod("name: p, labels: {\xe4: b}"), pod("name: p, labels: {\xe4: b, \xe9: c}"),
        pod("name: p",
            "n\xf8"
            "deSelector: {}, "),
        std::string("apiVersion: v1\nk\xefnd: Pod\nmetadata: {name: p}\n"),
        std::string("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {c\xf6ntainers: [{name: c, image: i}]}\n"),
        std::string("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {capacity: {c\xfcpu: 1}}\n")})
    EXPECT_THAT(told(text), ElementsAre(HasSubstr("the text is not UTF-8"))) << text;
}

TEST(BadBytes, HideNoOtherMistake) {
  EXPECT_THAT(
      told(pod("name: p\xe9, labels: {a: b c}", "priority: high, ")),
      ElementsAre(HasSubstr("f.yaml:3: the text is not UTF-8"), HasSubstr("f.yaml:3: metadata.labels.a: Invalid"),
                  HasSubstr("f.yaml:4: spec.priority: expected an integer")));
  EXPECT_THAT(told(pod("name: p") + "---\n" + pod("name: \xe9, nmae: q")),
              ElementsAre(HasSubstr("f.yaml:8: the text is not UTF-8"), HasSubstr("metadata.nmae: unknown field")));
}

TEST(LostValues, HideNoOtherMistakeAndCauseNone) {
  EXPECT_THAT(
      told("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  priority: .inf\n  nodeselector: {a: b}\n"
           "  hostNetwork: !!int maybe\n  volumes: !ours [{name: v}]\n"
           "  containers: [{name: c, image: i, resources: {limits: {cpu: -1, memory: .nan}}}]\n"),
      ElementsAre(HasSubstr("spec.priority: .inf is not a number that JSON has"),
                  HasSubstr("spec.hostNetwork: cannot read 'maybe' with the tag"),
                  HasSubstr("spec.volumes: the tag '!ours' is not supported"),
                  HasSubstr("limits.memory: .nan is not a number"),
                  HasSubstr("f.yaml:6: spec.nodeselector: unknown field"), HasSubstr("limits.cpu: '-1' is negative")));
}

TEST(BadBytes, MakeNoSyntaxErrors) {
  EXPECT_THAT(told("\x0c\n" + pod("name: p") + "\x1a"),
              ElementsAre(HasSubstr("f.yaml:1: control characters"), HasSubstr("f.yaml:6: control characters")));
  EXPECT_THAT(told(pod("name: \"p\"\xe9")), ElementsAre(HasSubstr("f.yaml:3: the text is not UTF-8")));
  EXPECT_THAT(told("{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \xe9}"),
              ElementsAre(HasSubstr("f.yaml:1: the text is not UTF-8")));
}

TEST(BadBytes, ADocumentThatTheyHideIsNotTakenAsRead) {
  Problems problems;
  read_documents("apiVersion: v1\nkind: P\xe9\n", "f", problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_FALSE(problems[0].read_on);
  problems.clear();
  const auto documents = read_documents(pod("name: p\xe9"), "f", problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_TRUE(problems[0].read_on);
  ASSERT_EQ(documents.size(), 1U);
  Problems none;
  EXPECT_FALSE(decode(documents[0], none)) << "an object with a value that could not be read";
}

TEST(BadBytes, AWideTextIsOneMistake) {
  const std::string yaml = pod("name: p");
  for (const bool big : {false, true}) {
    for (const bool mark : {false, true}) {
      std::string wide = !mark ? "" : big ? "\xFE\xFF" : "\xFF\xFE";
      for (const char c : yaml) wide += big ? std::string{'\0', c} : std::string{c, '\0'};
      EXPECT_THAT(told(wide), ElementsAre("f.yaml: the file is UTF-16 or UTF-32; save it as UTF-8"));
    }
  }
}

TEST(BadBytes, TheByte7FIsTextInJsonAlone) {
  const std::string json =
      "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p\", \"annotations\": {\"a\": "
      "\"x\x7fy\"}}, "
      "\"spec\": {\"containers\": [{\"name\": \"c\", \"image\": \"i\"}]}}\n";
  EXPECT_THAT(told(json), ElementsAre());
  EXPECT_THAT(told(pod("name: p, annotations: {a: \"x\x7fy\"}")),
              ElementsAre(HasSubstr("f.yaml:3: control characters are not allowed (byte 0x7f)")));
  EXPECT_THAT(told("{apiVersion: v1, kind: Pod, metadata: {name: \"p\x7f\"}}"),
              testing::Contains(HasSubstr("byte 0x7f")));
}

TEST(BadBytes, AShortTextWithTheByte7FAndOthersIsReadTwice) {
  for (const std::string text : {"\x7f", "a: \x7f", "{\x7f\xff", "a\x7f\xff"})
    EXPECT_THAT(told(text), Contains(HasSubstr("(byte 0x7f)"))) << text;
}

TEST(BadBytes, ATextWithoutThemIsLeftAsItIs) {
  EXPECT_EQ(replace_bad_bytes("a: \u00e9\r\n\tb\n", 1, false).text, "");
  EXPECT_EQ(replace_bad_bytes("a\xff\n\xff \nb", 7, false).text, "a\uFFFD\n \nb");
  EXPECT_THAT(replace_bad_bytes("a\xff\n\xff \nb", 7, false).lines,
              ElementsAre(testing::Pair(7U, 0xFF), testing::Pair(8U, 0xFF)));
}

}  // namespace
}  // namespace berth::api
