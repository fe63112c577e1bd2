#include "io/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "io/tls_files.h"

namespace berth::io {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr uint32_t kMaxHeaderBytes = 64 << 10;
constexpr auto kReloadPeriod = std::chrono::seconds(5);

std::chrono::nanoseconds chrono(Duration duration) { return std::chrono::nanoseconds(duration.nanos); }

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

const Route* find_route(const std::vector<Route>& routes, std::string_view path) {
  const Route* best = nullptr;
  for (const Route& route : routes) {
    const bool matches = route.path.ends_with('/') ? path.starts_with(route.path) : path == route.path;
    if (matches && (best == nullptr || route.path.size() > best->path.size())) best = &route;
  }
  return best;
}

ServerResponse text_response(int status, std::string text) {
  return {.status = status, .body = std::move(text) + "\n", .headers = {}};
}

// Lets answers of an AuthHook in from other threads, until the server has stopped.
struct Gate {
  std::mutex mutex;
  asio::io_context* io = nullptr;  // null once stopped

  template <typename Task>
  void post(Task task) {
    const std::lock_guard lock(mutex);
    if (io != nullptr) asio::post(*io, std::move(task));
  }
};

// A connection as those see it who want it to end.
struct Connection {
  virtual ~Connection() = default;
  // Closes it while it waits for a request of which nothing has come; with `served`, only after an earlier one.
  virtual bool close_if_idle(bool served) = 0;
};

// What all sessions share. `io` goes first at the end, and with it the sessions that its handlers own.
struct Shared {
  HttpServerOptions options;
  std::vector<Route> routes;
  TlsFiles tls;
  std::set<Connection*> connections;
  std::atomic<size_t> open{0};  // of them, for other threads
  bool draining = false;
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  asio::io_context io{1};

  Shared(HttpServerOptions o, std::vector<Route> r)
      : options(std::move(o)), routes(std::move(r)), tls(options.tls_cert_file, options.tls_key_file) {
    gate->io = &io;
  }
};

void accept_tls(beast::tcp_stream&, std::function<void(error_code)> done) { done({}); }
void accept_tls(beast::ssl_stream<beast::tcp_stream>& stream, std::function<void(error_code)> done) {
  stream.async_handshake(asio::ssl::stream_base::server, std::move(done));
}

// One connection: read, decide, answer, again. Owns itself through the handlers that are pending.
template <typename Stream>
class Session : public Connection, public std::enable_shared_from_this<Session<Stream>> {
 public:
  template <typename... Args>
  Session(Shared& shared, std::shared_ptr<asio::ssl::context> context, Args&&... args)
      : shared_(shared), context_(std::move(context)), stream_(std::forward<Args>(args)...) {
    shared_.connections.insert(this);
    shared_.open = shared_.connections.size();
    error_code ignored;
    peer_ = beast::get_lowest_layer(stream_).socket().remote_endpoint(ignored).address().to_string(ignored);
  }
  ~Session() override {
    shared_.connections.erase(this);
    shared_.open = shared_.connections.size();
  }

  bool close_if_idle(bool served) override {
    if (!reading_ || parser_->got_some() || (served && !served_)) return false;
    reading_ = false;
    error_code ignored;
    beast::get_lowest_layer(stream_).socket().close(ignored);
    return true;
  }

  void start() {
    arm();
    accept_tls(stream_, [self = this->shared_from_this()](error_code error) {
      if (!error) self->read();
    });
  }

 private:
  void arm() { beast::get_lowest_layer(stream_).expires_after(chrono(shared_.options.client_timeout)); }

  void read() {
    arm();
    parser_.emplace();
    parser_->header_limit(kMaxHeaderBytes);
    parser_->body_limit(shared_.options.max_body_bytes);
    reading_ = true;
    http::async_read(stream_, buffer_, *parser_,
                     [self = this->shared_from_this()](error_code error, size_t) { self->on_read(error); });
  }

  void on_read(error_code error) {
    reading_ = false;
    served_ = true;
    keep_alive_ = !error && parser_->get().keep_alive() && !shared_.draining;
    if (error == http::error::body_limit) return respond(text_response(413, "the request is too large"));
    if (error == http::error::header_limit) return respond(text_response(431, "the request's headers are too large"));
    if (error && error.category() == http::make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message)
      return respond(text_response(400, "this is not a valid HTTP request"));
    if (error) return;  // closed, or too slow: the socket goes with the session
    take_request();
    route();
  }

  void take_request() {
    auto& message = parser_->get();
    const std::string_view target(message.target().data(), message.target().size());
    const size_t question = target.find('?');
    request_ = {.method = std::string(message.method_string()),
                .path = std::string(target.substr(0, question)),
                .query = question == std::string_view::npos ? "" : std::string(target.substr(question + 1)),
                .headers = {},
                .body = std::move(message.body()),
                .peer = peer_};
    for (const auto& field : message)
      request_.headers.push_back({lower(std::string_view(field.name_string().data(), field.name_string().size())),
                                  std::string(field.value())});
  }

  void route() {
    const Route* route = find_route(shared_.routes, request_.path);
    if (route == nullptr) return respond(text_response(404, "there is nothing here"));
    if (std::ranges::find(route->methods, request_.method) == route->methods.end())
      return respond(text_response(405, "this method is not served here"));
    if (!route->auth) return respond(route->handler(request_));
    // The answer may come from any thread and after the connection's end; only the first counts.
    arm_auth(route);
    const uint64_t turn = turn_;
    const auto weak =
        this->weak_from_this();  // the timer's handler keeps the session; a foreign thread must not end it
    route->auth(request_, [weak, gate = shared_.gate, route, turn](int status) {
      gate->post([weak, route, turn, status] {
        if (const auto self = weak.lock()) self->decided(*route, turn, status);
      });
    });
  }

  void arm_auth(const Route* route) {
    beast::get_lowest_layer(stream_).expires_never();
    auth_timer_.emplace(shared_.io, chrono(shared_.options.client_timeout));
    auth_timer_->async_wait([self = this->shared_from_this(), route, turn = turn_](error_code error) {
      if (!error) self->decided(*route, turn, 503);
    });
  }

  void decided(const Route& route, uint64_t turn, int status) {
    if (turn != turn_) return;
    ++turn_;
    auth_timer_.reset();
    if (status == 200) return respond(route.handler(request_));
    if (status == 401) return respond(text_response(401, "say who you are: Authorization: Bearer <token>"));
    if (status == 503) return respond(text_response(503, "access could not be checked; try again"));
    respond(text_response(403, "you may not read this"));
  }

  void respond(ServerResponse answer) {
    auto response = std::make_shared<http::response<http::string_body>>(static_cast<http::status>(answer.status), 11);
    response->set(http::field::content_type, answer.content_type);
    response->set("X-Content-Type-Options", "nosniff");
    for (const Header& header : answer.headers) response->set(header.name, header.value);
    response->keep_alive(keep_alive_);
    const size_t size = answer.body.size();
    if (request_.method != "HEAD") response->body() = std::move(answer.body);
    response->prepare_payload();
    if (request_.method == "HEAD") response->content_length(size);
    request_ = {};
    arm();
    http::async_write(stream_, *response, [self = this->shared_from_this(), response](error_code error, size_t) {
      if (!error && self->keep_alive_ && !self->shared_.draining) return self->read();
      error_code ignored;
      beast::get_lowest_layer(self->stream_).socket().shutdown(tcp::socket::shutdown_send, ignored);
    });
  }

  Shared& shared_;
  std::shared_ptr<asio::ssl::context> context_;
  Stream stream_;
  beast::flat_buffer buffer_{kMaxHeaderBytes * 2};
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<asio::steady_timer> auth_timer_;
  ServerRequest request_;
  std::string peer_;
  uint64_t turn_ = 0;
  bool keep_alive_ = false;
  bool reading_ = false;  // waits for a request, or for the rest of one
  bool served_ = false;
};

}  // namespace

std::string_view ServerRequest::header(std::string_view name) const {
  for (const Header& each : headers)
    if (each.name == name) return each.value;
  return {};
}

class HttpServer::Impl {
 public:
  Impl(HttpServerOptions options, std::vector<Route> routes)
      : shared_(std::move(options), std::move(routes)),
        acceptor_(shared_.io),
        retry_(shared_.io),
        reload_(shared_.io) {}

  Status start() {
    if (shared_.options.tls_cert_file.empty() != shared_.options.tls_key_file.empty())
      return fail(ErrorCode::kInvalidInput, "TLS needs both a certificate file and a key file; give both or neither");
    if (shared_.tls.enabled()) BERTH_TRY_VOID(shared_.tls.load());
    BERTH_TRY_VOID(listen());
    accept();
    if (shared_.tls.enabled()) watch_files();
    thread_ = std::thread([this] { shared_.io.run(); });
    return {};
  }

  void drain(Duration longest) {
    asio::post(shared_.io, [this] {
      shared_.draining = true;
      error_code ignored;
      acceptor_.close(ignored);
      for (Connection* connection : shared_.connections) connection->close_if_idle(false);
    });
    const auto deadline = std::chrono::steady_clock::now() + chrono(longest);
    do std::this_thread::sleep_for(std::chrono::milliseconds(5));
    while (shared_.open > 0 && std::chrono::steady_clock::now() < deadline);
  }

  void stop() {
    const std::lock_guard lock(stop_mutex_);
    if (!thread_.joinable()) return;
    shared_.io.stop();
    thread_.join();
    const std::lock_guard gate(shared_.gate->mutex);
    shared_.gate->io = nullptr;
  }

  uint16_t port() const { return port_; }
  int64_t certificate_expiry_s() const { return shared_.tls.expiry_s(); }

 private:
  Status listen() {
    error_code error;
    const auto address = asio::ip::make_address(shared_.options.address, error);
    const tcp::endpoint endpoint(address, shared_.options.port);
    if (!error) acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (!error) port_ = acceptor_.local_endpoint(error).port();
    if (!error) return {};
    return fail(ErrorCode::kUnavailable, fmt::format("cannot listen on {}:{}: {}; choose another address or port",
                                                     shared_.options.address, shared_.options.port, error.message()));
  }

  void accept() {
    if (shared_.draining) return;
    if (shared_.connections.size() >= shared_.options.max_connections) {
      make_room();
      return accept_later();
    }
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (error) return accept_later();  // out of descriptors: the pause lets some close
      open_session(std::move(socket));
      accept();
    });
  }

  // A client that keeps its connection for later gives way to one that has something to ask now.
  void make_room() {
    for (Connection* connection : shared_.connections)
      if (connection->close_if_idle(true)) return;
  }

  void accept_later() {
    retry_.expires_after(std::chrono::milliseconds(20));
    retry_.async_wait([this](error_code error) {
      if (!error) accept();
    });
  }

  void open_session(tcp::socket socket) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    if (const auto& context = shared_.tls.context()) {
      std::make_shared<Session<beast::ssl_stream<beast::tcp_stream>>>(shared_, context, std::move(socket), *context)
          ->start();
    } else {
      std::make_shared<Session<beast::tcp_stream>>(shared_, nullptr, std::move(socket))->start();
    }
  }

  void watch_files() {
    reload_.expires_after(kReloadPeriod);
    reload_.async_wait([this](error_code error) {
      if (error) return;
      if (shared_.tls.changed()) {
        const Status loaded = shared_.tls.load();
        if (!loaded && shared_.options.on_warning)
          shared_.options.on_warning(loaded.error().with_context("the former certificate stays in use"));
      }
      watch_files();
    });
  }

  Shared shared_;
  tcp::acceptor acceptor_;
  asio::steady_timer retry_, reload_;
  uint16_t port_ = 0;
  std::mutex stop_mutex_;
  std::thread thread_;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() { stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpServerOptions options, std::vector<Route> routes) {
  auto impl = std::make_unique<Impl>(std::move(options), std::move(routes));
  BERTH_TRY_VOID(impl->start());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

uint16_t HttpServer::port() const { return impl_->port(); }
int64_t HttpServer::certificate_expiry_s() const { return impl_->certificate_expiry_s(); }
void HttpServer::drain(Duration longest) { impl_->drain(longest); }
void HttpServer::stop() { impl_->stop(); }

}  // namespace berth::io
