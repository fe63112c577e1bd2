#include "kube/proxy.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <vector>

namespace berth::kube {
namespace {

using Bytes = std::vector<unsigned char>;

// The 4 or 16 bytes of an IP address, which may be in brackets; none of anything else.
Bytes address_of(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  std::array<unsigned char, 16> bytes{};
  const std::string name(text);
  if (inet_pton(AF_INET, name.c_str(), bytes.data()) == 1) return {bytes.begin(), bytes.begin() + 4};
  if (inet_pton(AF_INET6, name.c_str(), bytes.data()) == 1) return {bytes.begin(), bytes.end()};
  return {};
}

bool is_this_machine(const std::string& host) {
  const Bytes address = address_of(host);
  if (address.size() == 4) return address[0] == 127;
  return host == "localhost" || (!address.empty() && address == address_of("::1"));
}

// "10.0.0.0/8".
bool in_network(const Bytes& address, std::string_view network) {
  const size_t slash = network.find('/');
  const Bytes base = address_of(network.substr(0, slash));
  size_t bits = 0;
  const std::string_view length = network.substr(slash + 1);
  const auto read = std::from_chars(length.data(), length.data() + length.size(), bits);
  if (base.size() != address.size() || base.empty() || read.ec != std::errc{} || bits > 8 * base.size()) return false;
  for (size_t i = 0; i < bits; ++i)
    if (((address[i / 8] ^ base[i / 8]) >> (7 - i % 8) & 1) != 0) return false;
  return true;
}

// Whether one entry of NO_PROXY means this server.
bool means(std::string_view entry, const io::Url& server) {
  if (entry == "*") return true;
  const Bytes address = address_of(server.host);
  if (entry.find('/') != std::string_view::npos) return in_network(address, entry);
  const size_t colon = entry.rfind(':');
  if (colon != std::string_view::npos && address_of(entry).empty()) {
    if (entry.substr(colon + 1) != server.port) return false;
    entry = entry.substr(0, colon);
  }
  if (!address.empty()) return address == address_of(entry);
  if (entry.starts_with('*')) entry.remove_prefix(1);
  if (entry.starts_with('.')) entry.remove_prefix(1);
  const std::string_view host = server.host;
  return !entry.empty() && host.ends_with(entry) &&
         (host.size() == entry.size() || host[host.size() - entry.size() - 1] == '.');
}

bool is_exempt(const io::Url& server, std::string_view no_proxy) {
  constexpr std::string_view kBetween = ", \t";
  while (true) {
    no_proxy.remove_prefix(std::min(no_proxy.find_first_not_of(kBetween), no_proxy.size()));
    if (no_proxy.empty()) return false;
    const std::string_view entry = no_proxy.substr(0, no_proxy.find_first_of(kBetween));
    if (means(entry, server)) return true;
    no_proxy.remove_prefix(entry.size());
  }
}

std::string in_small_letters(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// The first of these variables that is not empty, as {name, value}.
std::pair<std::string, std::string> first_of(const Environment& getenv, std::initializer_list<std::string> names) {
  for (const std::string& name : names)
    for (const std::string& written : {name, in_small_letters(name)})
      if (const std::string value = getenv(written).value_or(""); !value.empty()) return {written, value};
  return {};
}

}  // namespace

EnvironmentProxy environment_proxy(const io::Url& server, const Environment& getenv) {
  const auto [variable, url] = first_of(getenv, {server.scheme == "https" ? "HTTPS_PROXY" : "HTTP_PROXY", "ALL_PROXY"});
  if (variable.empty()) return {};
  io::Url plain = server;
  plain.host = in_small_letters(plain.host);
  const std::string no_proxy = in_small_letters(first_of(getenv, {"NO_PROXY"}).second);
  return {variable, url.find("://") == std::string::npos ? "http://" + url : url,
          !is_this_machine(plain.host) && !is_exempt(plain, no_proxy)};
}

}  // namespace berth::kube
