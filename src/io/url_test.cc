#include "io/url.h"

#include <gtest/gtest.h>

namespace berth::io {
namespace {

TEST(Url, IsTakenApart) {
  const Url url = *parse_url("HTTPS://user:secret@[fd00::1]:6443/a/b");
  EXPECT_EQ(url.scheme, "https");
  EXPECT_EQ(url.host, "[fd00::1]");
  EXPECT_EQ(url.port, "6443");
  EXPECT_EQ(url.path, "/a/b");
  EXPECT_TRUE(url.has_user);
  EXPECT_EQ(url.origin(), "https://[fd00::1]:6443");
  EXPECT_EQ(parse_url("https://h")->port, "443");
  EXPECT_EQ(parse_url("http://h:065")->port, "65");
}

TEST(Url, WhatIsNoneOrHasNoSuchPortIsAnErrorWithoutThePassword) {
  for (const std::string text : {"", "h:1", "https://", "https://h:x", "https://u:secret@h h", "http://[::1"})
    EXPECT_NE(parse_url(text).error().message.find("write scheme://host:port"), std::string::npos) << text;
  for (const std::string port : {"0", "99999", "65536", "123456789012345678901234567890"})
    for (const std::string& text : {"https://h:" + port, "https://u:secret@[::1]:" + port + "/a?b#c"})
      EXPECT_EQ(parse_url(text).error().message, "there is no port " + port + "; a port is from 1 to 65535") << text;
}

TEST(Url, OfAProxyHasASchemeThatProxiesHave) {
  for (const std::string text : {"http://p:1", "https://p", "socks5://u:p@p:1080", "socks5h://p:1"})
    EXPECT_TRUE(parse_proxy_url(text)) << text;
  for (const std::string text : {"foo://u:secret@x", "p:3128", "u:secret@p:3128", "ftp://p", "http://u:secret@p:0"}) {
    const Result<Url> url = parse_proxy_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().message.find("secret"), std::string::npos) << url.error().message;
  }
  EXPECT_NE(parse_proxy_url("foo://x").error().message.find("write http://, https:// or socks5://"), std::string::npos);
}

TEST(Url, OfAProxyIsMadeForCurlToMeanWhatClientGoDoes) {
  EXPECT_EQ(proxy_for_curl("http://u:p%40x@p"), "http://u:p%40x@p:80/");
  EXPECT_EQ(proxy_for_curl("https://p"), "https://p:443/");
  EXPECT_EQ(proxy_for_curl("socks5://u:p@[::1]"), "socks5h://u:p@[::1]:1080/");
  EXPECT_EQ(proxy_for_curl("socks5h://p:1"), "socks5h://p:1/");
  EXPECT_EQ(proxy_for_curl(""), "");
}

}  // namespace
}  // namespace berth::io
