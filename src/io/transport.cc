#include "io/transport.h"

#include <future>
#include <memory>

namespace berth::io {

std::string_view HttpResponse::header(std::string_view name) const {
  for (const Header& each : headers)
    if (each.name == name) return each.value;
  return {};
}

Result<HttpResponse> Transport::call(HttpRequest request) {
  auto answer = std::make_shared<std::promise<Result<HttpResponse>>>();
  auto future = answer->get_future();
  send(std::move(request), [answer](Result<HttpResponse> result) { answer->set_value(std::move(result)); });
  return future.get();
}

bool surely_not_applied(const Error& error) {
  if (error.http_status >= 400 && error.http_status < 500) return error.code != ErrorCode::kTimeout;
  return error.http_status == 0 && error.code != ErrorCode::kTimeout;
}

std::string url_escape(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || c == '~';
    if (plain) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

}  // namespace berth::io
