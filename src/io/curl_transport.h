// CurlTransport: the Transport of production, on libcurl's multi interface with one epoll thread.
//
// HTTP/1.1 with keep-alive: one connection per request in flight beats one HTTP/2 connection against kube-apiserver. At
// most `max_in_flight` requests are on the wire, the rest wait in order; streams come on top. Easy handles and
// connections are reused. TLS is verified unless the options say otherwise; a proxy comes from the options alone,
// never from the environment.
//
// A connection that the server closed while idle is noticed when it is next used, and libcurl then repeats the request
// on a new one, POST included, if not a byte of an answer had come. So a write may rarely arrive twice: writers must
// take a 409 as "ask" and use names or UIDs that make a repetition harmless.
#pragma once

#include <memory>

#include "io/transport.h"

namespace berth::io {

// What a request is signed with; immutable, replaced as a whole when it is renewed.
struct Credential {
  std::string authorization{};    // value of the Authorization header; empty for none
  std::string client_cert_pem{};  // with its key, for TLS client authentication; empty for none
  std::string client_key_pem{};
};
// Called on the transport's thread for each request; must be quick and thread-safe. An error fails the request unsent.
using CredentialProvider = std::function<Result<std::shared_ptr<const Credential>>()>;

struct CurlTransportOptions {
  std::string server{};  // "https://10.0.0.1:6443", with a path prefix if there is one
  std::string ca_pem{};  // PEM bundle; empty: the system's
  bool insecure_skip_verify = false;
  std::string tls_server_name{};  // name to verify and to send as SNI, where it is not the server's
  std::string proxy_url{};        // http://, https:// or socks5://; empty for none
  std::string user_agent = "berth";
  CredentialProvider credential{};           // empty for none
  std::function<void()> on_unauthorized{};   // told of each 401, so that a token may be renewed early
  int max_in_flight = 32;                    // 1 to 1024
  size_t max_queued = 100'000;               // sends beyond this fail at once with kThrottled
  size_t max_response_bytes = 512ULL << 20;  // of one response that is not a stream
  Duration connect_timeout = Duration::seconds(10);
  // Whole seconds for which an unused connection is kept. Less than any server or balancer keeps it (kube-apiserver 90
  // s, some balancers 60): a request on one that the other side is closing is lost.
  Duration idle_connection = Duration::seconds(30);
  const Clock* clock = nullptr;  // a SystemClock if null; not owned
};

struct TransportStats {
  uint64_t requests = 0;  // completed, whatever the outcome
  uint64_t failures = 0;  // of these, without a response
  uint64_t connections = 0;
  uint64_t in_flight = 0;
  uint64_t queued = 0;
};

class CurlTransport final : public Transport {
 public:
  // Starts the thread. Errors: a malformed server or proxy URL, no libcurl with TLS.
  static Result<std::unique_ptr<CurlTransport>> create(CurlTransportOptions options);
  ~CurlTransport() override;  // stop()

  void send(HttpRequest request, ResponseCallback done) override;
  StreamId open_stream(HttpRequest request, StreamCallbacks callbacks) override;
  void cancel(StreamId id) override;
  void run_after(Duration delay, std::function<void()> task) override;
  const Clock& clock() const override;
  void stop() override;

  TransportStats stats() const;

 private:
  class Loop;
  explicit CurlTransport(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace berth::io
