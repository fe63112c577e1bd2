// HttpServer: small routes over HTTP or HTTPS: /metrics, /healthz, /readyz, the webhook, the dashboard's API.
//
// One thread of its own runs all connections; handlers run on it and must be quick and thread-safe against the rest of
// the program. Limits are there before any handler is: connections (one that is only kept for later gives way), request
// size, and 10 s for a client to send its request, to take the answer, or to stay idle. TLS is 1.2 or newer;
// certificate and key are read again when the files change, for new connections, and a broken pair leaves the old one
// in use.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "io/transport.h"

namespace berth::io {

struct ServerRequest {
  std::string method{};
  std::string path{};             // without the query, not decoded
  std::string query{};            // after '?', not decoded
  std::vector<Header> headers{};  // names in lower case
  std::string body{};
  std::string peer{};  // address of the client

  std::string_view header(std::string_view name) const;
};

struct ServerResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body{};
  std::vector<Header> headers{};
};

using Handler = std::function<ServerResponse(const ServerRequest&)>;
// Decides whether a request may be served and calls `decided` once, from any thread, now or later, with 200, 401 or 403
// (anything else, and silence for 10 s, refuses).
using AuthHook = std::function<void(const ServerRequest&, std::function<void(int status)> decided)>;

struct Route {
  std::string path{};  // exact, or a prefix when it ends in "/"; the longest match wins
  Handler handler{};
  AuthHook auth{};  // empty: open to all who reach the port
  std::vector<std::string> methods{"GET", "HEAD"};
};

struct HttpServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;            // 0: any free one
  std::string tls_cert_file{};  // both or neither
  std::string tls_key_file{};
  size_t max_connections = 256;
  size_t max_body_bytes = 3ULL << 20;
  Duration client_timeout = Duration::seconds(10);
  std::function<void(const Error&)> on_warning{};  // for example a certificate that could not be read again
};

class HttpServer {
 public:
  // Binds, listens and serves. Errors: address in use or not ours, unreadable or mismatched certificate and key.
  static Result<std::unique_ptr<HttpServer>> start(HttpServerOptions options, std::vector<Route> routes);
  ~HttpServer();  // stop()

  uint16_t port() const;
  // When the certificate in use runs out, in seconds since 1970; 0 without TLS.
  int64_t certificate_expiry_s() const;
  // Accepts no more connections, closes those that wait for a request and lets the others have their answer, for at
  // most `longest`. stop() comes after. Not from a handler.
  void drain(Duration longest);
  // Closes the listener and all connections, and joins the thread. Not from a handler.
  void stop();

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::io
