#include "kube/credentials.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/base64.h"
#include "io/system_clock.h"
#include "kube/exec_plugin.h"

namespace berth::kube {
namespace {

constexpr Duration kFilePeriod = Duration::seconds(60);  // as client-go
constexpr Duration kPluginLimit = Duration::seconds(60);
constexpr Duration kRetryPeriod = Duration::seconds(10);
constexpr Duration kExpiryMargin = Duration::seconds(60);

std::string trimmed(std::string text) {
  const auto blank = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && blank(text.back())) text.pop_back();
  while (!text.empty() && blank(text.front())) text.erase(0, 1);
  return text;
}

// RFC 9110, 5.5: a field value has no control characters.
bool fits_header(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < 0x20) || c == 0x7F; });
}

}  // namespace

Credentials::Credentials(const ClusterAccess& access, const Clock& clock) : access_(access), clock_(clock) {}

// A plugin that is about to begin escapes one kill, so it is tried until the thread has ended.
Credentials::~Credentials() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  wake_.notify_all();
  while (thread_.joinable() && !wake_.wait_for(lock, std::chrono::milliseconds(50), [this] { return ended_; }))
    kill_exec_plugin();
  lock.unlock();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<Credentials> Credentials::create(const ClusterAccess& access, const Clock& clock) {
  std::shared_ptr<Credentials> out(new Credentials(access, clock));
  out->renew();
  if (out->renewable()) out->thread_ = std::thread([self = out.get()] { self->renew_loop(); });
  return out;
}

Result<std::shared_ptr<const io::Credential>> Credentials::current() {
  const std::lock_guard lock(mutex_);
  if (credential_ == nullptr) return fail(trouble_);
  return credential_;
}

void Credentials::on_unauthorized() {
  {
    const std::lock_guard lock(mutex_);
    renew_now_ = true;
  }
  wake_.notify_all();
}

bool Credentials::renewable() const {
  return access_.exec || !access_.token_file.empty() || !access_.client_cert_file.empty();
}

Result<std::string> Credentials::token_of_file() const {
  BERTH_TRY(text, read_file(access_.token_file, "tokenFile"));
  const std::string token = trimmed(text);
  if (token.empty())
    return fail(ErrorCode::kUnauthorized,
                fmt::format("tokenFile '{}' is empty; write a token into it", access_.token_file));
  return token;
}

// Reads or runs what the credential comes from. `serves`: until it is to be made anew.
Result<io::Credential> Credentials::make(Duration& serves) const {
  io::Credential fresh;
  fresh.client_cert_pem = access_.client_cert_pem;
  fresh.client_key_pem = access_.client_key_pem;
  if (!access_.client_cert_file.empty()) {
    BERTH_TRY(cert, read_file(access_.client_cert_file, "client-certificate"));
    fresh.client_cert_pem = cert;
  }
  if (!access_.client_key_file.empty()) {
    BERTH_TRY(key, read_file(access_.client_key_file, "client-key"));
    fresh.client_key_pem = key;
  }
  std::string token = access_.token;
  serves = kFilePeriod;
  if (!access_.token_file.empty()) {
    BERTH_TRY(read, token_of_file());
    token = read;
  }
  if (access_.exec) {
    BERTH_TRY(made, run_exec_plugin(*access_.exec, access_, kPluginLimit));
    if (!made.token.empty()) token = made.token;
    if (!made.client_cert_pem.empty())
      fresh.client_cert_pem = made.client_cert_pem, fresh.client_key_pem = made.client_key_pem;
    serves = made.expires ? std::max(kRetryPeriod, *made.expires - clock_.wall() - kExpiryMargin)
                          : Duration::seconds(365 * 86400);
  }
  if (!fits_header(token))
    return fail(
        ErrorCode::kUnauthorized,
        "the token has a control character, such as a line end within it, which no HTTP header can hold; look at "
        "where it comes from");
  if (!token.empty()) fresh.authorization = "Bearer " + token;
  if (token.empty() && !access_.username.empty())
    fresh.authorization = "Basic " + base64_encode(access_.username + ":" + access_.password);
  return fresh;
}

// False if that failed: the old credential then stays in use, and requests will show whether it still serves.
bool Credentials::renew() {
  Duration serves;
  Result<io::Credential> made = make(serves);
  const std::lock_guard lock(mutex_);
  renew_at_ = clock_.monotonic() + (made ? serves : kRetryPeriod);
  if (made) credential_ = std::make_shared<const io::Credential>(std::move(*made));
  else trouble_ = made.error();
  return made.has_value();
}

void Credentials::renew_loop() {
  std::unique_lock lock(mutex_);
  Time earliest = clock_.monotonic() + kRetryPeriod;
  while (!stopping_) {
    const Time now = clock_.monotonic();
    if (now < earliest || (now < renew_at_ && !renew_now_)) {
      const Time until = renew_now_ ? earliest : std::max(earliest, renew_at_);
      wake_.wait_for(lock,
                     std::chrono::nanoseconds(std::clamp((until - now).nanos, int64_t{1'000'000}, kFilePeriod.nanos)));
      continue;
    }
    renew_now_ = false;
    lock.unlock();
    renew();
    lock.lock();
    earliest = clock_.monotonic() + kRetryPeriod;
  }
  ended_ = true;
  wake_.notify_all();
}

io::CurlTransportOptions transport_options(const ClusterAccess& access) {
  const auto credentials = Credentials::create(access, io::SystemClock::instance());
  io::CurlTransportOptions out;
  out.server = access.server;
  out.ca_pem = access.ca_pem;
  out.insecure_skip_verify = access.insecure_skip_verify;
  out.tls_server_name = access.tls_server_name;
  out.proxy_url = access.proxy_url;
  out.credential = [credentials] { return credentials->current(); };
  out.on_unauthorized = [credentials] { credentials->on_unauthorized(); };
  return out;
}

}  // namespace berth::kube
