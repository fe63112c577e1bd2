#include "api/protobuf_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/protobuf.h"
#include "api/protobuf_bytes.h"
#include "api/protobuf_tables.h"

namespace berth::api {
namespace {

using nlohmann::json;

constexpr ProtobufField kInner[] = {kept(text(1, "name")), integer(2, "count")};
constexpr ProtobufField kSource[] = {message(3, "disk", kInner), texts(4, "more")};
constexpr ProtobufField kTable[] = {
    text(1, "text"),
    kept(text(2, "pointer")),
    integer(3, "number"),
    kept(integer(4, "weight")),
    flag(5, "on"),
    kept(flag(6, "set")),
    time(7, "at"),
    message(8, "inner", kInner),
    inlined(9, "source", kSource),
    texts(10, "words"),
    messages(11, "list", kInner),
    text_map(12, "labels"),
    quantity_map(13, "amounts"),
};

std::string text_of(std::string_view bytes, const ProtobufMessage& table = kTable) {
  std::string out;
  const Status status = append_protobuf_as_json(bytes, table, out);
  EXPECT_TRUE(status) << status.error().message;
  return out;
}

// The problem, with what could be read behind it.
std::string broken(std::string_view bytes, const ProtobufMessage& table = kTable) {
  std::string out;
  const Status status = append_protobuf_as_json(bytes, table, out);
  EXPECT_FALSE(status) << out;
  return status ? "" : status.error().message + " | " + out;
}

TEST(ProtobufJson, WritesScalarsAndLeavesZerosOut) {
  EXPECT_EQ(text_of(Bytes().text(1, "a").number(3, 7).number(5, 1).done()), R"({"text":"a","number":7,"on":true})");
  EXPECT_EQ(text_of(Bytes().text(1, "").number(3, 0).number(5, 0).done()), "{}");
  EXPECT_EQ(text_of(""), "{}");
}

TEST(ProtobufJson, KeepsZerosThatSaySomething) {
  EXPECT_EQ(text_of(Bytes().text(2, "").number(4, 0).number(6, 0).done()), R"({"pointer":"","weight":0,"set":false})");
}

TEST(ProtobufJson, NegativeNumbersComeAsTwosComplement) {
  EXPECT_EQ(text_of(Bytes().number(3, static_cast<uint64_t>(-5)).done()), R"({"number":-5})");
  EXPECT_EQ(text_of(Bytes().number(3, uint64_t{1} << 63).done()), R"({"number":-9223372036854775808})");
}

TEST(ProtobufJson, TimesAreRfc3339AndWithoutContentNotSet) {
  const auto at = [](int64_t seconds) {
    return text_of(Bytes().text(7, Bytes().number(1, static_cast<uint64_t>(seconds)).number(2, 0).done()).done());
  };
  EXPECT_EQ(at(1767323045), R"({"at":"2026-01-02T03:04:05Z"})");
  EXPECT_EQ(at(0), R"({"at":"1970-01-01T00:00:00Z"})");
  EXPECT_EQ(at(-1), R"({"at":"1969-12-31T23:59:59Z"})");
  EXPECT_EQ(text_of(Bytes().text(7, "").done()), "{}");
}

TEST(ProtobufJson, ATimeBeyondAllMeasureIsBroken) {
  for (const uint64_t seconds : {uint64_t{1} << 62, uint64_t{1} << 63})
    EXPECT_EQ(broken(Bytes().text(7, Bytes().number(1, seconds).done()).text(1, "a").done()),
              R"(at is no time that Berth can count (in protobuf) | {"text":"a"})");
}

TEST(ProtobufJson, EmptyMessagesStay) {
  EXPECT_EQ(text_of(Bytes().text(8, "").text(9, Bytes().text(3, "").done()).text(11, "").done()),
            R"({"inner":{},"disk":{},"list":[{}]})");
}

TEST(ProtobufJson, InlinedMembersStandInTheirParent) {
  const std::string source = Bytes().text(3, Bytes().text(1, "sda").done()).text(4, "x").done();
  EXPECT_EQ(text_of(Bytes().text(1, "a").text(9, source).text(10, "w").done()),
            R"({"text":"a","disk":{"name":"sda"},"more":["x"],"words":["w"]})");
}

TEST(ProtobufJson, RepeatedFieldsStandTogetherHoweverTheyCome) {
  const std::string one = Bytes().text(1, "one").done(), two = Bytes().text(1, "two").number(2, 2).done();
  EXPECT_EQ(text_of(Bytes().text(11, one).text(10, "a").text(11, two).text(10, "").text(1, "t").done()),
            R"({"text":"t","words":["a",""],"list":[{"name":"one"},{"name":"two","count":2}]})");
}

TEST(ProtobufJson, MapsHaveTheirKeysAsMembers) {
  EXPECT_EQ(text_of(Bytes().pair(12, "a", "b").pair(12, "c", "").text(12, "").quantity(13, "cpu", "1500m").done()),
            R"({"labels":{"a":"b","c":"","":""},"amounts":{"cpu":"1500m"}})");
}

TEST(ProtobufJson, UnknownFieldsOfEveryKindAreSkipped) {
  const std::string unknown = Bytes()
                                  .number(90, 1)
                                  .text(91, "\xff\xff\xff")
                                  .raw(
                                      "\xe1\x05"
                                      "12345678")
                                  .raw(
                                      "\xe5\x05"
                                      "1234")
                                  .done();
  EXPECT_EQ(text_of(unknown + Bytes().text(1, "a").done() + unknown), R"({"text":"a"})");
}

TEST(ProtobufJson, StringsAreEscapedAndMadeValidUtf8) {
  const std::string odd = "q\" b\\ n\n z" + std::string(1, '\0') + " \x7f ü € 😀";
  EXPECT_EQ(json::parse(text_of(Bytes().text(1, odd).done()))["text"], odd);
  for (const std::string_view bad : {"\xff", "\xc3", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80"}) {
    const json parsed = json::parse(text_of(Bytes().text(1, std::string("a") + std::string(bad) + "b").done()));
    std::string wanted = "a";  // one for each byte, as Go does
    for (size_t i = 0; i < bad.size(); ++i) wanted += "\xEF\xBF\xBD";
    EXPECT_EQ(parsed["text"], wanted + "b");
  }
}

TEST(ProtobufJson, OtherWireTypesOfKnownFieldsAreBrokenAndTheRestIsRead) {
  EXPECT_EQ(broken(Bytes().number(1, 7).number(3, 3).done()),
            R"(the object has text of another type (in protobuf) | {"number":3})");
  EXPECT_EQ(broken(Bytes().text(8, Bytes().text(2, "x").text(1, "n").done()).number(3, 3).done()),
            R"(inner has count of another type (in protobuf) | {"number":3,"inner":{"name":"n"}})");
  EXPECT_EQ(broken(Bytes().text(12, Bytes().number(1, 4).done()).done()),
            R"(labels has a member of another type (in protobuf) | {"labels":{"":""}})");
}

TEST(ProtobufJson, SingularFieldsThatComeTwiceAreBroken) {
  EXPECT_EQ(broken(Bytes().text(1, "a").text(1, "b").done()),
            R"(the object has text twice (in protobuf) | {"text":"b"})");
}

TEST(ProtobufJson, GroupsAndFieldZeroAndLongNumbersAreBroken) {
  for (const std::string_view bad : {"\x0b\x0c", "\x0e", "\x02\x01x", "\x07"})
    EXPECT_FALSE(broken(Bytes().text(1, "a").raw(bad).done()).empty());
  EXPECT_EQ(broken(Bytes().raw("\x18" + std::string(10, '\xff') + "\x01").done()),
            "the object has a number of more than 64 bits (in protobuf) | {}");
  EXPECT_EQ(text_of(Bytes().raw("\x18" + std::string(9, '\xff') + "\x01").done()), R"({"number":-1})");
}

TEST(ProtobufJson, ABrokenMessageLosesItsRestAndNoMore) {
  const std::string inner = Bytes().text(1, "n").raw("\x12\x09xx").done();
  EXPECT_EQ(broken(Bytes().text(11, inner).text(11, Bytes().text(1, "m").done()).pair(12, "a", "b").done()),
            R"(list ends within a field (in protobuf) | {"list":[{"name":"n"},{"name":"m"}],"labels":{"a":"b"}})");
}

// Every field of the table, none of which is zero.
std::string full() {
  const std::string inner = Bytes().text(1, "n").number(2, 300).done();
  return Bytes()
      .text(1, "a")
      .text(2, "b")
      .number(3, 1000)
      .number(4, 5)
      .number(5, 1)
      .number(6, 1)
      .text(7, Bytes().number(1, 1767323045).done())
      .text(8, inner)
      .text(9, Bytes().text(3, inner).done())
      .text(10, "w")
      .text(11, inner)
      .pair(12, "k", "v")
      .quantity(13, "cpu", "1")
      .number(99, 1)
      .done();
}

TEST(ProtobufJson, HoweverTheBytesAreCutTheTextIsJson) {
  const std::string whole = full();
  EXPECT_EQ(json::parse(text_of(whole)).size(), 13U);
  size_t intact = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);  // its own allocation, for the sanitizer
    std::string out;
    if (append_protobuf_as_json(cut, kTable, out)) ++intact;
    ASSERT_TRUE(json::accept(out)) << size << ": " << out;
  }
  EXPECT_EQ(intact, 14U);  // where a field of the outermost message ends: the empty one, and after each but the last
}

TEST(ProtobufJson, EveryByteMayBeAnything) {
  const std::string whole = full();
  for (size_t at = 0; at < whole.size(); ++at)
    for (int value = 0; value < 256; ++value) {
      std::string bytes = whole, out;
      bytes[at] = static_cast<char>(value);
      (void)append_protobuf_as_json(bytes, kTable, out);
      ASSERT_TRUE(json::accept(out)) << at << " " << value << ": " << out;
    }
}

struct Recursive {
  ProtobufField fields[1];
  Recursive() : fields{text(1, "x")} { fields[0] = message(1, "x", fields); }
};

TEST(ProtobufJson, DepthIsBounded) {
  const Recursive table;
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep = Bytes().text(1, deep).done();
  const std::string out = broken(deep, table.fields);
  EXPECT_NE(out.find("is nested too deep"), std::string::npos);
  EXPECT_LT(out.size(), 1000U);
}

TEST(Protobuf, FindsTheObjectInItsEnvelope) {
  const std::string magic("k8s\0", 4);
  const std::string type = Bytes().text(1, "v1").text(2, "Pod").done();
  const std::string whole = magic + Bytes().text(1, type).text(2, "object").text(3, "").text(4, "").done();
  EXPECT_EQ(protobuf_envelope(whole)->object, "object");
  EXPECT_EQ(protobuf_envelope(whole)->kind, "Pod");
  EXPECT_EQ(protobuf_envelope(magic)->object, "");
  EXPECT_FALSE(protobuf_envelope(""));
  EXPECT_FALSE(protobuf_envelope("{}"));
  EXPECT_FALSE(protobuf_envelope(magic + Bytes().text(2, "object").text(3, "gzip").done()));
  EXPECT_FALSE(protobuf_envelope(magic + "\x12\x7f"));
  EXPECT_FALSE(is_protobuf("k8s"));
}

TEST(ProtobufTables, AStatusHasWhatErrorsSay) {
  const std::string details = Bytes().text(1, "pods").number(5, 3).done();
  EXPECT_EQ(
      text_of(
          Bytes().text(1, "").text(2, "Failure").text(3, "m").text(4, "Expired").text(5, details).number(6, 410).done(),
          kStatusProtobuf),
      R"({"status":"Failure","message":"m","reason":"Expired","details":{"retryAfterSeconds":3},"code":410})");
}

}  // namespace
}  // namespace berth::api
