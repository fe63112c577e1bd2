#include "base/printable.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(Printable, KeepsWordsAndUtf8) {
  EXPECT_EQ(printable("naïve 日本 \xF0\x9F\x9A\xA2"), "naïve 日本 \xF0\x9F\x9A\xA2");
}

TEST(Printable, EscapesWhatCouldActOnATerminal) {
  EXPECT_EQ(printable("\x1b[31mred\n\t\r\x07\x7f"), "\\x1b[31mred\\n\\t\\r\\x07\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\x9b31m");
  EXPECT_EQ(printable("a\xE2\x80\xAE"
                      "b"),
            "a\\u202eb");
}

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("\xFF\xC0\xAF\xED\xA0\x80"), "\\xff\\xc0\\xaf\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\xE2\x82"), "\\xe2\\x82");
}

TEST(Printable, LeavesWhatIsPrintableAsItIs) {
  const std::string once = printable("a\x1b[31m\n\\x1b\xFF\u202e日本");
  EXPECT_EQ(printable(once), once);
}

TEST(Printable, CutsLongTextAtACharacter) {
  EXPECT_EQ(printable("日本", 4), "日...");
  EXPECT_EQ(printable("abcd", 4), "abcd");
}

}  // namespace
}  // namespace berth
