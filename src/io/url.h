// Url: an address as libcurl takes it apart, so that what is checked at the start is what will be used.
#pragma once

#include <string>

#include "base/result.h"

namespace berth::io {

struct Url {
  std::string scheme{};  // in small letters
  std::string host{};    // an IPv6 address in brackets
  std::string port{};    // as given, or the scheme's own
  std::string path{};
  bool has_user = false;  // a name or a password before the host

  // "https://host:port", in which there is no password.
  std::string origin() const;
};

// Errors: no URL with a scheme and a host, or a port outside 1 to 65535. They show at most the port: a URL may hold a
// password.
Result<Url> parse_url(const std::string& text);
// The same for a proxy. Errors: also another scheme than http, https, socks5 and socks5h.
Result<Url> parse_proxy_url(const std::string& text);
// The proxy's URL, with user and password, for CURLOPT_PROXY to mean what client-go does: the port that the scheme has
// (curl takes 1080 for all), and names that a SOCKS proxy resolves, which may be the only one that can. Empty for none.
std::string proxy_for_curl(const std::string& text);

}  // namespace berth::io
