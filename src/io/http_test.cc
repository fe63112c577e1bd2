// CurlTransport against HttpServer over loopback.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>

#include "io/curl_transport.h"
#include "io/http_server.h"
#include "io/tls_test_files.h"

namespace berth::io {
namespace {

Route echo_route() {
  return {.path = "/echo",
          .handler =
              [](const ServerRequest& r) {
                return ServerResponse{
                    .status = 200,
                    .content_type = "text/plain",
                    .body = r.method + " " + r.query + " " + std::string(r.header("authorization")) + " " + r.body,
                    .headers = {{"Retry-After", "7"}}};
              },
          .methods = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}};
}

std::unique_ptr<HttpServer> serve(std::vector<Route> routes, HttpServerOptions options = {}) {
  auto server = HttpServer::start(std::move(options), std::move(routes));
  EXPECT_TRUE(server.has_value()) << server.error().message;
  return std::move(*server);
}

std::unique_ptr<CurlTransport> connect_to(const std::string& url, CurlTransportOptions options = {}) {
  options.server = url;
  auto transport = CurlTransport::create(std::move(options));
  EXPECT_TRUE(transport.has_value()) << transport.error().message;
  return std::move(*transport);
}

std::string url_of(const HttpServer& server, const std::string& scheme = "http") {
  return scheme + "://127.0.0.1:" + std::to_string(server.port());
}

// Counts down to zero; wait() gives up after 20 s.
class Latch {
 public:
  explicit Latch(int count) : left_(count) {}
  void count_down() {
    const std::lock_guard lock(mutex_);
    if (--left_ <= 0) zero_.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return zero_.wait_for(lock, std::chrono::seconds(20), [&] { return left_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable zero_;
  int left_;
};

// Never decides; hands the decision to the test.
struct Held {
  std::mutex mutex;
  std::vector<std::function<void(int)>> decisions;
  AuthHook hook() {
    return [this](const ServerRequest&, std::function<void(int)> decided) {
      const std::lock_guard lock(mutex);
      decisions.push_back(std::move(decided));
    };
  }
  void decide_all(int status) {
    const std::lock_guard lock(mutex);
    for (auto& each : decisions) each(status);
    decisions.clear();
  }
  size_t size() {
    const std::lock_guard lock(mutex);
    return decisions.size();
  }
};

TEST(CurlTransport, SendsMethodQueryHeadersAndBody) {
  const auto server = serve({echo_route()});
  const auto transport = connect_to(url_of(*server));
  for (const std::string method : {"POST", "PUT", "PATCH", "DELETE", "GET", "POST"}) {
    const std::string body = method == "GET" ? "" : "b\0dy";
    const auto answer =
        transport->call({.method = method, .target = "/echo?x=1", .headers = {{"Authorization", "me"}}, .body = body});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body, method + " x=1 me " + body);
    EXPECT_EQ(answer->header("retry-after"), "7");
  }
  EXPECT_EQ(transport->stats().connections, 1u);
}

TEST(CurlTransport, AConnectionThatWasLongUnusedIsNotUsedAgain) {
  const auto server = serve({echo_route()});
  io::CurlTransportOptions options;
  options.server = url_of(*server);
  options.idle_connection = Duration::seconds(1);
  const auto transport = *CurlTransport::create(options);
  ASSERT_TRUE(transport->call({.method = "GET", .target = "/echo"}));
  std::this_thread::sleep_for(std::chrono::milliseconds(3100));
  ASSERT_TRUE(transport->call({.method = "GET", .target = "/echo"}));
  EXPECT_EQ(transport->stats().connections, 2u);
}

TEST(CurlTransport, AnErrorStatusIsAnAnswer) {
  const auto server = serve({echo_route()});
  const auto transport = connect_to(url_of(*server));
  EXPECT_EQ(transport->call({.target = "/nothing"})->status, 404);
}

TEST(CurlTransport, RefusedConnectionIsUnavailableAndSurelyNotApplied) {
  uint16_t free_port = 0;
  { free_port = serve({})->port(); }
  const auto transport = connect_to("http://127.0.0.1:" + std::to_string(free_port));
  const auto answer = transport->call({.method = "POST", .target = "/", .body = "x"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(surely_not_applied(answer.error())) << answer.error().message;
}

TEST(CurlTransport, NoAnswerInTimeMeansUnknownOutcome) {
  Held held;
  Route route = echo_route();
  route.auth = held.hook();
  const auto server = serve({route});
  const auto transport = connect_to(url_of(*server));
  const auto answer =
      transport->call({.method = "POST", .target = "/echo", .body = "x", .timeout = Duration::millis(100)});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kTimeout);
  EXPECT_FALSE(surely_not_applied(answer.error()));
}

TEST(CurlTransport, ARequestThatExpiresInTheQueueIsNotSent) {
  Held held;
  Route route = echo_route();
  route.auth = held.hook();
  const auto server = serve({route});
  const auto transport = connect_to(url_of(*server), {.max_in_flight = 1});
  Latch first(1);
  transport->send({.target = "/echo"}, [&](auto) { first.count_down(); });
  const auto second = transport->call({.target = "/echo", .timeout = Duration::millis(50)});
  ASSERT_FALSE(second);
  EXPECT_TRUE(surely_not_applied(second.error())) << second.error().message;
  EXPECT_EQ(held.size(), 1u);
  held.decide_all(200);
  EXPECT_TRUE(first.wait());
}

TEST(CurlTransport, MayStartIsAskedJustBeforeSending) {
  const auto server = serve({echo_route()});
  const auto transport = connect_to(url_of(*server));
  const auto answer = transport->call({.target = "/echo", .may_start = [] { return false; }});
  ASSERT_FALSE(answer);
  EXPECT_TRUE(surely_not_applied(answer.error()));
}

// What is between the two questions may be long: a handshake, or a process that is stopped and goes on a minute later.
TEST(CurlTransport, MayStartIsAskedAgainWhenTheConnectionIsThere) {
  std::atomic<int> arrived{0};
  Route route = echo_route();
  route.auth = [&](const ServerRequest&, std::function<void(int)> decide) {
    ++arrived;
    decide(200);
  };
  const auto server = serve({route});
  const auto transport = connect_to(url_of(*server));
  for (const bool kept_alive : {false, true}) {
    if (kept_alive) { EXPECT_TRUE(transport->call({.target = "/echo"})); }
    const int before = arrived;
    int asked = 0;
    const auto answer =
        transport->call({.method = "POST", .target = "/echo", .body = "x", .may_start = [&] { return ++asked == 1; }});
    ASSERT_FALSE(answer);
    EXPECT_TRUE(surely_not_applied(answer.error())) << answer.error().message;
    EXPECT_EQ(asked, 2);
    EXPECT_TRUE(transport->call({.target = "/echo"}));  // comes after what was kept back
    EXPECT_EQ(arrived, before + 1);
  }
}

TEST(CurlTransport, KeepsAtMostMaxInFlightOnTheWireAndAnswersAll) {
  Held held;
  Route route = echo_route();
  route.auth = held.hook();
  const auto server = serve({route});
  const auto transport = connect_to(url_of(*server), {.max_in_flight = 4});
  Latch all(20);
  for (int i = 0; i < 20; ++i)
    transport->send({.target = "/echo"}, [&](auto result) {
      EXPECT_TRUE(result);
      all.count_down();
    });
  size_t most = 0;
  for (int round = 0; round < 2000 && transport->stats().requests < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    most = std::max(most, held.size());
    held.decide_all(200);
  }
  EXPECT_TRUE(all.wait());
  EXPECT_LE(most, 4u);
  EXPECT_LE(transport->stats().connections, 4u);
}

TEST(CurlTransport, StopAnswersEverythingOnce) {
  Held held;
  Route route = echo_route();
  route.auth = held.hook();
  const auto server = serve({route});
  const auto transport = connect_to(url_of(*server), {.max_in_flight = 2});
  std::atomic<int> answered{0}, unknown{0};
  for (int i = 0; i < 10; ++i)
    transport->send({.method = "POST", .target = "/echo", .body = "x"}, [&](auto result) {
      ++answered;
      if (!result && !surely_not_applied(result.error())) ++unknown;
    });
  while (held.size() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  transport->stop();
  EXPECT_EQ(answered, 10);
  EXPECT_EQ(unknown, 2);
  EXPECT_FALSE(transport->call({.target = "/echo"}));
}

TEST(CurlTransport, StreamsTheBodyInChunksAndReportsTheEnd) {
  Route big{.path = "/big",
            .handler = [](const ServerRequest&) { return ServerResponse{.body = std::string(1 << 20, 'x')}; }};
  const auto server = serve({big});
  const auto transport = connect_to(url_of(*server));
  Latch end(1);
  size_t bytes = 0, chunks = 0;
  int status = 0;
  transport->open_stream(
      {.target = "/big"},
      {.on_chunk = [&](std::string_view chunk) { bytes += chunk.size(), ++chunks; },
       .done = [&](Result<HttpResponse> result) { status = result ? result->status : -1, end.count_down(); }});
  ASSERT_TRUE(end.wait());
  EXPECT_EQ(bytes, size_t{1} << 20);
  EXPECT_GT(chunks, 1u);
  EXPECT_EQ(status, 200);
}

TEST(CurlTransport, CancelEndsAStreamWithAnError) {
  Held held;
  Route route = echo_route();
  route.auth = held.hook();
  const auto server = serve({route});
  const auto transport = connect_to(url_of(*server));
  Latch end(1);
  const StreamId id = transport->open_stream({.target = "/echo"}, {.on_chunk = [](std::string_view) {},
                                                                   .done =
                                                                       [&](auto result) {
                                                                         EXPECT_FALSE(result);
                                                                         end.count_down();
                                                                       }});
  transport->cancel(id);
  EXPECT_TRUE(end.wait());
}

TEST(CurlTransport, RunsTasksOnItsThreadInOrderOfTime) {
  const auto transport = connect_to("http://127.0.0.1:1");
  std::vector<int> order;
  Latch all(2);
  transport->run_after(Duration::millis(40), [&] { order.push_back(2), all.count_down(); });
  transport->run_after(Duration::millis(5), [&] { order.push_back(1), all.count_down(); });
  ASSERT_TRUE(all.wait());
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(CurlTransport, RefusesAServerThatIsNoUrl) {
  EXPECT_FALSE(CurlTransport::create({.server = "ftp://x"}));
  EXPECT_FALSE(CurlTransport::create({.server = ""}));
}

// TLS: a server whose certificate a test authority signed.
class Tls : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("berth_tls_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    write(make_test_cert(ca_, "berth.test"));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const TestPair& pair) {
    std::ofstream(cert()) << pair.cert_pem;
    std::ofstream(key()) << pair.key_pem;
  }
  std::string cert() const { return folder_ / "tls.crt"; }
  std::string key() const { return folder_ / "tls.key"; }
  std::unique_ptr<HttpServer> serve_tls() {
    HttpServerOptions options;
    options.tls_cert_file = cert();
    options.tls_key_file = key();
    return serve({echo_route()}, options);
  }
  static Result<HttpResponse> get(CurlTransport& transport) { return transport.call({.target = "/echo"}); }

  TestPair ca_ = make_test_ca("berth test authority");
  std::filesystem::path folder_;
};

TEST_F(Tls, AcceptsAServerThatTheCaSigned) {
  const auto server = serve_tls();
  const auto answer = get(*connect_to(url_of(*server, "https"), {.ca_pem = ca_.cert_pem}));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 200);
}

TEST_F(Tls, ErrorNamesTheCaWhenAnotherSignedTheServer) {
  const auto server = serve_tls();
  const auto answer = get(*connect_to(url_of(*server, "https"), {.ca_pem = make_test_ca("other").cert_pem}));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(answer.error().message.find("certificate-authority"), std::string::npos) << answer.error().message;
  EXPECT_TRUE(surely_not_applied(answer.error()));
}

TEST_F(Tls, InsecureSkipVerifyAcceptsAnyServer) {
  const auto server = serve_tls();
  EXPECT_TRUE(get(*connect_to(url_of(*server, "https"), {.insecure_skip_verify = true})));
}

TEST_F(Tls, ServerNameIsVerifiedInPlaceOfTheAddress) {
  const auto server = serve_tls();
  const auto good =
      get(*connect_to(url_of(*server, "https"), {.ca_pem = ca_.cert_pem, .tls_server_name = "berth.test"}));
  EXPECT_TRUE(good) << good.error().message;
  EXPECT_FALSE(get(*connect_to(url_of(*server, "https"), {.ca_pem = ca_.cert_pem, .tls_server_name = "wrong.test"})));
}

TEST_F(Tls, ServerRefusesACertificateWithoutItsKey) {
  std::ofstream(key()) << make_test_cert(ca_, "x").key_pem;
  HttpServerOptions options;
  options.tls_cert_file = cert();
  options.tls_key_file = key();
  const auto server = HttpServer::start(options, {});
  ASSERT_FALSE(server);
  EXPECT_NE(server.error().message.find("tls.key"), std::string::npos);
}

TEST_F(Tls, ServerTakesUpANewCertificate) {
  const auto server = serve_tls();
  const TestPair other = make_test_ca("second authority");
  write(make_test_cert(other, "berth.test"));
  bool taken = false;
  for (int i = 0; i < 100 && !taken; ++i) {
    taken = get(*connect_to(url_of(*server, "https"), {.ca_pem = other.cert_pem})).has_value();
    if (!taken) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_TRUE(taken);
}

TEST_F(Tls, ServerSaysWhenItsCertificateRunsOut) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  EXPECT_GT(serve_tls()->certificate_expiry_s(), now);
  EXPECT_EQ(serve({})->certificate_expiry_s(), 0);
}

TEST(HttpServer, DrainLetsWhatHasBegunBeAnsweredAndClosesTheRest) {
  std::promise<void> begun;
  const auto slow = [&](const ServerRequest&) {
    begun.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return ServerResponse{.body = "done"};
  };
  const auto server = serve({echo_route(), {.path = "/slow", .handler = slow}});
  const auto idle = connect_to(url_of(*server));
  ASSERT_EQ(idle->call({.target = "/echo"})->status, 200);  // stays open
  const auto busy = connect_to(url_of(*server));
  auto answer = std::async(std::launch::async, [&] { return busy->call({.target = "/slow"}); });
  begun.get_future().wait();
  const auto start = std::chrono::steady_clock::now();
  server->drain(Duration::seconds(30));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  const auto got = answer.get();
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->body, "done");
  EXPECT_FALSE(connect_to(url_of(*server))->call({.target = "/echo"}));
}

TEST(HttpServer, ConnectionsKeptForLaterGiveWay) {
  HttpServerOptions options;
  options.max_connections = 2;
  const auto server = serve({echo_route()}, options);
  std::vector<std::unique_ptr<CurlTransport>> kept;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 6; ++i) {
    kept.push_back(connect_to(url_of(*server)));
    EXPECT_EQ(kept.back()->call({.target = "/echo"})->status, 200);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8));  // idle ones have 10 s
  for (const auto& transport : kept) EXPECT_EQ(transport->call({.target = "/echo"})->status, 200);
}

TEST(HttpServer, AnswersUnknownPathsMethodsAndLargeBodies) {
  HttpServerOptions options;
  options.max_body_bytes = 1000;
  const auto server =
      serve({echo_route(), {.path = "/get", .handler = [](auto&) { return ServerResponse{}; }}}, options);
  const auto transport = connect_to(url_of(*server));
  EXPECT_EQ(transport->call({.target = "/x"})->status, 404);
  EXPECT_EQ(transport->call({.method = "POST", .target = "/get", .body = "x"})->status, 405);
  EXPECT_EQ(transport->call({.method = "POST", .target = "/echo", .body = std::string(2000, 'x')})->status, 413);
}

TEST(HttpServer, TheLongestPrefixWins) {
  const auto say = [](std::string text) {
    return [text](const ServerRequest&) { return ServerResponse{.body = text}; };
  };
  const auto server = serve({{.path = "/", .handler = say("root")}, {.path = "/api/", .handler = say("api")}});
  const auto transport = connect_to(url_of(*server));
  EXPECT_EQ(transport->call({.target = "/api/x"})->body, "api");
  EXPECT_EQ(transport->call({.target = "/other"})->body, "root");
}

TEST(HttpServer, AuthHookDecidesFromAnotherThread) {
  std::vector<std::thread> threads;
  Route route = echo_route();
  route.auth = [&](const ServerRequest& request, std::function<void(int)> decided) {
    const int status = request.header("authorization") == "good" ? 200
                       : request.header("authorization").empty() ? 401
                                                                 : 403;
    threads.emplace_back([status, decided] { decided(status), decided(200); });
  };
  const auto server = serve({route});
  const auto transport = connect_to(url_of(*server));
  const auto status = [&](std::string who) {
    return transport->call({.target = "/echo", .headers = {{"Authorization", who}}})->status;
  };
  EXPECT_EQ(status("good"), 200);
  EXPECT_EQ(status("weak"), 403);
  EXPECT_EQ(transport->call({.target = "/echo"})->status, 401);
  for (auto& thread : threads) thread.join();
}

TEST(HttpServer, SaysThatAnAddressIsInUse) {
  const auto server = serve({});
  HttpServerOptions options;
  options.port = server->port();
  const auto second = HttpServer::start(options, {});
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(std::to_string(server->port())), std::string::npos);
}

}  // namespace
}  // namespace berth::io
