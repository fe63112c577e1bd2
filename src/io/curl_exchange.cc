#include "io/curl_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "io/url.h"

namespace berth::io {
namespace {

size_t on_body(char* data, size_t size, size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const size_t bytes = size * count;
  if (exchange.stream != 0 && exchange.response.status / 100 == 2) {
    exchange.on_chunk({data, bytes});
    return bytes;
  }
  if (exchange.response.body.size() + bytes > exchange.max_response_bytes) {
    exchange.too_large = true;
    return 0;
  }
  exchange.response.body.append(data, bytes);
  return bytes;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\r' || text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return text;
}

size_t on_header(char* data, size_t size, size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) {  // a new response: 100 Continue and a proxy's CONNECT have their own before ours
    exchange.response = {};
    long status = 0;
    curl_easy_getinfo(exchange.easy, CURLINFO_RESPONSE_CODE, &status);
    exchange.response.status = static_cast<int>(status);
    return line.size();
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return line.size();
  Header header{std::string(line.substr(0, colon)), std::string(trimmed(line.substr(colon + 1)))};
  std::ranges::transform(header.name, header.name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (header.name == "content-length" && exchange.stream == 0) {
    const long long announced = atoll(header.value.c_str());
    if (announced > 0) exchange.response.body.reserve(std::min<size_t>(static_cast<size_t>(announced), 64 << 20) + 64);
  }
  exchange.response.headers.push_back(std::move(header));
  return line.size();
}

// libcurl has a connection and writes the request next: whatever time went by since it was started, in a handshake, in
// a queue of libcurl's or in a stopped process, this is the last moment to keep it back.
int on_about_to_send(void* user, char*, char*, int, int) {
  const auto& exchange = *static_cast<Exchange*>(user);
  const bool wanted = !exchange.request.may_start || exchange.request.may_start();
  return wanted ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

void set_blob(CURL* easy, CURLoption option, const std::string& pem) {
  if (pem.empty()) {
    curl_easy_setopt(easy, option, nullptr);
    return;
  }
  curl_blob blob{const_cast<char*>(pem.data()), pem.size(), CURL_BLOB_NOCOPY};
  curl_easy_setopt(easy, option, &blob);
}

void add_header(Exchange& exchange, const std::string& line) {
  exchange.header_list = curl_slist_append(exchange.header_list, line.c_str());
}

void set_method(CURL* easy, const HttpRequest& request) {
  curl_easy_setopt(easy, CURLOPT_NOBODY, 0L);
  curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, nullptr);
  if (request.method == "HEAD") {
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    return;
  }
  const bool has_body = !request.body.empty() || request.method == "POST";
  if (has_body) {
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
  }
  if (request.method != (has_body ? "POST" : "GET"))
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

// Without its user and password; empty where there is none.
std::string shown_proxy(const CurlTransportOptions& options) {
  const Result<Url> url = parse_proxy_url(options.proxy_url);
  return url ? url->origin() : "";
}

// True if the proxy answered, and not with a way to the server.
bool refused_by_proxy(CURLcode code, const Exchange& exchange) {
  constexpr long kOkMax = 299;
  long answer = 0;  // to CONNECT
  if (exchange.easy != nullptr) curl_easy_getinfo(exchange.easy, CURLINFO_HTTP_CONNECTCODE, &answer);
  return code == CURLE_PROXY || answer > kOkMax;
}

}  // namespace

Result<Endpoint> parse_endpoint(const CurlTransportOptions& options) {
  const Result<Url> url = parse_url(options.server);
  if (!url || (url->scheme != "http" && url->scheme != "https"))
    return fail(
        ErrorCode::kInvalidInput,
        fmt::format("server '{}' is not an http:// or https:// URL; correct 'server' of the cluster", options.server));
  const auto& [scheme, host, port, full_path, has_user] = *url;
  std::string path = full_path;
  while (path.ends_with('/')) path.pop_back();
  const bool renamed = !options.tls_server_name.empty() && scheme == "https" && options.tls_server_name != host;
  Endpoint endpoint;
  const bool ipv6 = options.tls_server_name.find(':') != std::string::npos;
  const std::string name = ipv6 ? "[" + options.tls_server_name + "]" : options.tls_server_name;
  endpoint.base_url = fmt::format("{}://{}:{}{}", scheme, renamed ? name : host, port, path);
  if (renamed) {
    endpoint.host_header = fmt::format("Host: {}:{}", host, port);
    endpoint.connect_to = fmt::format("{}:{}:{}:{}", name, port, host, port);
  }
  return endpoint;
}

void configure_handle(CURL* easy, const CurlTransportOptions& options, curl_slist* connect_to) {
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 20L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 10L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.nanos / 1'000'000));
  curl_easy_setopt(easy, CURLOPT_USERAGENT, options.user_agent.c_str());
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &on_body);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &on_header);
  curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, &on_about_to_send);
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 64L * 1024);
  curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, static_cast<long>(options.idle_connection.nanos / 1'000'000'000));
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, options.insecure_skip_verify ? 0L : 1L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, options.insecure_skip_verify ? 0L : 2L);
  curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
  if (!options.ca_pem.empty()) set_blob(easy, CURLOPT_CAINFO_BLOB, options.ca_pem);
  curl_easy_setopt(easy, CURLOPT_PROXY, proxy_for_curl(options.proxy_url).c_str());  // "": none
  curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
  if (connect_to != nullptr) curl_easy_setopt(easy, CURLOPT_CONNECT_TO, connect_to);
}

void configure_request(Exchange& exchange, const CurlTransportOptions& options, const Endpoint& endpoint,
                       Duration left) {
  CURL* easy = exchange.easy;
  curl_easy_setopt(easy, CURLOPT_URL, (endpoint.base_url + exchange.request.target).c_str());
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_PREREQDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange.error_text.data());
  const long left_ms = std::max<long>(1, static_cast<long>(left.nanos / 1'000'000));
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, exchange.stream != 0 ? 0L : left_ms);
  set_method(easy, exchange.request);
  for (const Header& header : exchange.request.headers) add_header(exchange, header.name + ": " + header.value);
  if (exchange.credential) {
    if (!exchange.credential->authorization.empty())
      add_header(exchange, "Authorization: " + exchange.credential->authorization);
    set_blob(easy, CURLOPT_SSLCERT_BLOB, exchange.credential->client_cert_pem);
    set_blob(easy, CURLOPT_SSLKEY_BLOB, exchange.credential->client_key_pem);
  }
  if (!endpoint.host_header.empty()) add_header(exchange, endpoint.host_header);
  add_header(exchange, "Expect:");  // no waiting for 100 Continue
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, exchange.header_list);
  exchange.max_response_bytes = options.max_response_bytes;
}

bool may_have_been_sent(const Exchange& exchange) {
  if (exchange.easy == nullptr) return false;
  long bytes = 0;
  curl_easy_getinfo(exchange.easy, CURLINFO_REQUEST_SIZE, &bytes);
  return bytes > 0;
}

// Curl says how long it tried ("after 3 ms", "after 5000 milliseconds"), so that one trouble would read differently
// each time, and whoever says it only when it changes would say it again and again. No std::regex: g++ 12 warns of it
// where it is sanitized.
std::string without_times(std::string text) {
  static constexpr std::string_view kAfter = " after ";
  for (size_t at = text.find(kAfter); at != std::string::npos; at = text.find(kAfter, at + 1)) {
    size_t end = at + kAfter.size();
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    if (end == at + kAfter.size()) continue;
    for (const std::string_view unit : {" milliseconds", " ms"}) {
      if (text.compare(end, unit.size(), unit) != 0) continue;
      text.erase(at, end + unit.size() - at);
      break;
    }
  }
  return text;
}

Error exchange_error(CURLcode code, const Exchange& exchange, const CurlTransportOptions& options) {
  const std::string detail =
      exchange.error_text[0] != '\0' ? without_times(exchange.error_text.data()) : curl_easy_strerror(code);
  const std::string proxy = shown_proxy(options);
  const auto error = [&](ErrorCode kind, std::string_view what, std::string_view next) {
    return Error{kind,
                 fmt::format("{} {}{}{}: {} ({}); {}", exchange.request.method, options.server,
                             proxy.empty() ? "" : " through the proxy ", proxy, what, detail, next),
                 0, 0};
  };
  if (exchange.too_large)
    return error(ErrorCode::kUnsupported,
                 fmt::format("the response is larger than {} bytes", options.max_response_bytes),
                 "ask for smaller pages");
  if (!proxy.empty() && refused_by_proxy(code, exchange))
    return error(ErrorCode::kUnavailable, "the proxy does not lead to the server",
                 "check that it may, and the user and password of proxy-url or HTTPS_PROXY");
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return error(ErrorCode::kUnavailable, "the server's name does not resolve",
                   "check 'server' of the cluster, and DNS");
    case CURLE_COULDNT_RESOLVE_PROXY:
      return error(ErrorCode::kUnavailable, "the proxy's name does not resolve", "check proxy-url or HTTPS_PROXY");
    case CURLE_COULDNT_CONNECT:
      if (!proxy.empty())
        return error(ErrorCode::kUnavailable, "no connection to the proxy",
                     "check that it runs, and proxy-url or HTTPS_PROXY");
      return error(ErrorCode::kUnavailable, "no connection to the server",
                   "check that it runs and is reachable from here");
    case CURLE_PEER_FAILED_VERIFICATION:
      return error(ErrorCode::kUnavailable, "the server's certificate is not one that the configured CA vouches for",
                   "check certificate-authority(-data), the server's name and the certificate's dates");
    case CURLE_SSL_CACERT_BADFILE:
      return error(ErrorCode::kUnavailable, "the CA bundle cannot be used",
                   "check certificate-authority(-data): PEM is expected");
    case CURLE_SSL_CERTPROBLEM:
      return error(ErrorCode::kUnavailable, "the client certificate or its key cannot be used",
                   "check client-certificate(-data) and client-key(-data): a matching PEM pair is expected");
    case CURLE_SSL_CONNECT_ERROR:
      return error(ErrorCode::kUnavailable, "the TLS handshake failed",
                   "check the port, and that the server speaks TLS 1.2 or newer");
    default: break;
  }
  if (may_have_been_sent(exchange))
    return error(ErrorCode::kTimeout,
                 code == CURLE_OPERATION_TIMEDOUT ? "no answer in time" : "the connection was lost",
                 "the server may have acted, ask it before trying again");
  if (code == CURLE_ABORTED_BY_CALLBACK)
    return error(ErrorCode::kUnavailable, "its sender no longer wants it", "the request was not sent");
  return error(ErrorCode::kUnavailable,
               code == CURLE_OPERATION_TIMEDOUT ? "no connection in time" : "the request could not be sent",
               "the request was not sent and may be tried again");
}

}  // namespace berth::io
