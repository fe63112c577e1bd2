#include "kube/proxy.h"

#include <gtest/gtest.h>

#include <map>

namespace berth::kube {
namespace {

EnvironmentProxy proxy_for(const std::string& server, const std::map<std::string, std::string>& environment) {
  return environment_proxy(*io::parse_url(server), [environment](const std::string& name) {
    return environment.contains(name) ? std::optional(environment.at(name)) : std::nullopt;
  });
}

TEST(EnvironmentProxy, IsOfTheVariableForTheServersScheme) {
  EXPECT_EQ(proxy_for("https://h:1", {{"HTTPS_PROXY", "http://s:1"}, {"HTTP_PROXY", "http://p:1"}}).url, "http://s:1");
  EXPECT_EQ(proxy_for("http://h:1", {{"HTTPS_PROXY", "http://s:1"}, {"HTTP_PROXY", "http://p:1"}}).url, "http://p:1");
  EXPECT_EQ(proxy_for("https://h:1", {{"https_proxy", "s:1"}}).url, "http://s:1");
  EXPECT_EQ(proxy_for("https://h:1", {{"all_proxy", "socks5://s:1"}}).variable, "all_proxy");
  EXPECT_EQ(proxy_for("https://h:1", {{"HTTPS_PROXY", ""}, {"HTTP_PROXY", "http://p:1"}}).variable, "");
}

TEST(EnvironmentProxy, DoesNotServeWhatNoProxyListsNorThisMachine) {
  const auto serves = [](const std::string& server, const std::string& no_proxy) {
    return proxy_for(server, {{"HTTPS_PROXY", "http://p:1"}, {"NO_PROXY", no_proxy}}).serves;
  };
  for (const auto& [server, no_proxy] : std::map<std::string, std::string>{
           {"https://a.corp.example", "x, corp.example"},
           {"https://B.corp.example", ".CORP.example"},
           {"https://c.corp.example", "*.corp.example"},
           {"https://corp.example", "corp.example:443"},
           {"https://10.1.2.3:6443", "10.1.0.0/16"},
           {"https://10.9.9.9:6443", "10.9.9.9"},
           {"https://[fd00::1]:6443", "fd00::/8"},
           {"https://[fd01::1]:6443", "fd01::1"},
           {"https://any", "*"},
           {"https://localhost:1", ""},
           {"https://127.0.0.2:1", ""},
           {"https://[::1]:1", ""},
       })
    EXPECT_FALSE(serves(server, no_proxy)) << server;
  for (const auto& [server, no_proxy] : std::map<std::string, std::string>{
           {"https://any", ""},
           {"https://notcorp.example", "corp.example"},
           {"https://corp.example", "corp.example:6443"},
           {"https://10.2.0.1", "10.1.0.0/16,10.2.0.0/99,10.2.0.2,/,:,."},
           {"https://[fd00::2]", "fd00::1,10.0.0.0/8"},
       })
    EXPECT_TRUE(serves(server, no_proxy)) << server;
}

}  // namespace
}  // namespace berth::kube
