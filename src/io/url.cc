#include "io/url.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace berth::io {
namespace {

struct CurlFree {
  void operator()(char* text) const { curl_free(text); }
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

std::string part_of(CURLU* url, CURLUPart part) {
  char* raw = nullptr;
  if (curl_url_get(url, part, &raw, CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK) return {};
  const std::unique_ptr<char, CurlFree> text(raw);
  return text.get();
}

// What stands behind the host's colon; nothing without one.
std::string_view port_in(std::string_view text) {
  if (const size_t start = text.find("://"); start != std::string_view::npos) text.remove_prefix(start + 3);
  text = text.substr(0, text.find_first_of("/?#"));
  if (const size_t user = text.rfind('@'); user != std::string_view::npos) text.remove_prefix(user + 1);
  if (const size_t bracket = text.rfind(']'); bracket != std::string_view::npos) text.remove_prefix(bracket + 1);
  const size_t colon = text.rfind(':');
  return colon == std::string_view::npos ? "" : text.substr(colon + 1);
}

bool is_port(std::string_view text) {
  constexpr int kPortMax = 65535;
  if (text.empty() || text.size() > 5 || text.find_first_not_of("0123456789") != std::string_view::npos) return false;
  const int value = std::stoi(std::string(text));
  return value >= 1 && value <= kPortMax;
}

// Of which curl has another mind where a proxy is concerned, and none for SOCKS.
std::string default_port(std::string_view scheme) {
  if (scheme == "http") return "80";
  if (scheme == "https") return "443";
  return scheme == "socks5" || scheme == "socks5h" ? "1080" : "";
}

using Handle = std::unique_ptr<CURLU, CurlFree>;

// Null if it is no URL with a scheme.
Handle take_apart(const std::string& text) {
  Handle url(curl_url());
  return curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK ? std::move(url)
                                                                                                     : nullptr;
}

}  // namespace

std::string Url::origin() const { return fmt::format("{}://{}{}{}", scheme, host, port.empty() ? "" : ":", port); }

Result<Url> parse_url(const std::string& text) {
  const std::string_view port = port_in(text);
  if (!port.empty() && port.find_first_not_of("0123456789") == std::string_view::npos && !is_port(port))
    return fail(ErrorCode::kInvalidInput, fmt::format("there is no port {}; a port is from 1 to 65535", port));
  const Handle url = take_apart(text);
  if (url == nullptr) return fail(ErrorCode::kInvalidInput, "this is no URL; write scheme://host:port");
  Url out;
  out.scheme = part_of(url.get(), CURLUPART_SCHEME);
  out.host = part_of(url.get(), CURLUPART_HOST);
  out.port = part_of(url.get(), CURLUPART_PORT);
  if (out.port.empty()) out.port = default_port(out.scheme);
  out.path = part_of(url.get(), CURLUPART_PATH);
  out.has_user = !part_of(url.get(), CURLUPART_USER).empty() || !part_of(url.get(), CURLUPART_PASSWORD).empty();
  if (out.host.empty()) return fail(ErrorCode::kInvalidInput, "there is no host in this URL; write scheme://host:port");
  return out;
}

Result<Url> parse_proxy_url(const std::string& text) {
  constexpr std::string_view kWayOut = "write http://, https:// or socks5://, the proxy's host and its port";
  if (text.find("://") == std::string::npos)
    return fail(ErrorCode::kInvalidInput, fmt::format("this has no scheme; {}", kWayOut));
  BERTH_TRY(url, parse_url(text));
  if (url.scheme != "http" && url.scheme != "https" && url.scheme != "socks5" && url.scheme != "socks5h")
    return fail(ErrorCode::kInvalidInput, fmt::format("no proxy has the scheme '{}'; {}", url.scheme, kWayOut));
  return url;
}

std::string proxy_for_curl(const std::string& text) {
  const Result<Url> proxy = parse_proxy_url(text);
  if (!proxy) return "";
  const Handle url = take_apart(text);
  curl_url_set(url.get(), CURLUPART_PORT, proxy->port.c_str(), 0);
  if (proxy->scheme == "socks5") curl_url_set(url.get(), CURLUPART_SCHEME, "socks5h", CURLU_NON_SUPPORT_SCHEME);
  return part_of(url.get(), CURLUPART_URL);
}

}  // namespace berth::io
