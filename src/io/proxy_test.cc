// How CurlTransport uses a proxy, and what it says of one that does not serve.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <thread>

#include "io/curl_transport.h"
#include "io/http_server.h"

namespace berth::io {
namespace {

Result<HttpResponse> get_through(const std::string& proxy, const std::string& server) {
  auto transport = CurlTransport::create({.server = server, .proxy_url = proxy});
  if (!transport) return fail(transport.error());
  return (*transport)->call({.target = "/echo"});
}

std::unique_ptr<HttpServer> serve_echo() {
  Route echo{.path = "/echo", .handler = [](const ServerRequest&) {
               return ServerResponse{200, "text/plain", "hi", {}};
             }};
  auto server = HttpServer::start({}, {echo});
  EXPECT_TRUE(server.has_value());
  return std::move(*server);
}

std::string url_of(const HttpServer& server) { return "http://127.0.0.1:" + std::to_string(server.port()); }

// A variable of the environment for as long as this lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

// Takes one connection and keeps the request that a SOCKS 5 client makes (RFC 1928), which it refuses.
class SocksServer {
 public:
  SocksServer() : listening_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listening_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listening_, 1), 0);
    EXPECT_EQ(getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  SocksServer(const SocksServer&) = delete;
  SocksServer& operator=(const SocksServer&) = delete;
  ~SocksServer() {
    shutdown(listening_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    close(listening_);
  }

  std::string url() const { return "socks5://127.0.0.1:" + std::to_string(port_); }
  std::string request() {
    thread_.join();
    return request_;
  }

 private:
  void serve() {
    const int client = accept(listening_, nullptr, nullptr);
    if (client < 0) return;
    std::array<char, 512> bytes;
    const std::string no_authentication("\x05\x00", 2);
    if (read(client, bytes.data(), bytes.size()) > 0 && write(client, no_authentication.data(), 2) == 2) {
      const ssize_t count = read(client, bytes.data(), bytes.size());
      request_.assign(bytes.data(), static_cast<size_t>(std::max<ssize_t>(0, count)));
      const std::string refused("\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00", 10);
      EXPECT_EQ(write(client, refused.data(), refused.size()), 10);
    }
    close(client);
  }

  int listening_;
  int port_ = 0;
  std::string request_;
  std::thread thread_;
};

TEST(Proxy, OneThatIsDownIsNamedWithoutItsPassword) {
  const Variable exempt("NO_PROXY", "*");  // whoever chose the proxy has looked at it
  for (const std::string scheme : {"http", "https", "socks5"}) {
    const auto answer = get_through(scheme + "://me:secret@127.0.0.1:1", "https://berth.invalid:6443");
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(answer.error().message.find("https://berth.invalid:6443 through the proxy " + scheme +
                                          "://127.0.0.1:1: no connection to the proxy"),
              std::string::npos)
        << answer.error().message;
    EXPECT_EQ(answer.error().message.find("secret"), std::string::npos) << answer.error().message;
  }
}

TEST(Proxy, WhatIsSaidOfOneThatIsDownIsTheSameEachTime) {  // so that a log may leave out what it has said
  const auto answer = get_through("http://127.0.0.1:1", "https://berth.invalid:6443");
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("(Failed to connect to 127.0.0.1 port 1: "), std::string::npos)
      << answer.error().message;
}

TEST(Proxy, OneThatDoesNotLeadToTheServerSaysSoAndNothingWasSent) {
  const auto proxy = serve_echo();  // which knows no CONNECT
  const auto answer = get_through(url_of(*proxy), "https://berth.invalid:6443");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(answer.error().message.find("the proxy does not lead to the server"), std::string::npos)
      << answer.error().message;
}

TEST(Proxy, TheEnvironmentChoosesNone) {
  const Variable dead("http_proxy", "http://127.0.0.1:1");
  const auto server = serve_echo();
  const auto answer = get_through("", url_of(*server));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "hi");
}

TEST(Proxy, ASocksProxyResolvesTheServersName) {
  SocksServer socks;
  const auto answer = get_through(socks.url(), "https://berth.invalid:6443");
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("the proxy does not lead to the server"), std::string::npos)
      << answer.error().message;
  EXPECT_EQ(socks.request(), std::string("\x05\x01\x00\x03\x0d", 5) + "berth.invalid" + std::string("\x19\x2b", 2));
}

TEST(Proxy, OneOfAnotherKindIsRefused) {
  EXPECT_FALSE(CurlTransport::create({.server = "https://h", .proxy_url = "foo://x"}));
  EXPECT_FALSE(CurlTransport::create({.server = "https://h", .proxy_url = "http://x:99999"}));
}

}  // namespace
}  // namespace berth::io
