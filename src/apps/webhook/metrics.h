// What the webhook counts, in Prometheus's text format. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/time.h"

namespace berth::apps {

class WebhookMetrics {
 public:
  WebhookMetrics();
  ~WebhookMetrics();

  // A request to `path` (convert, mutate, validate) took so long and was `result`: ok, changed, warned, denied, failed
  // (a conversion), bad_request or error.
  void answered(std::string_view path, std::string_view result, Duration took);
  // When the certificate runs out, in seconds since 1970.
  void certificate_expiry(int64_t seconds);
  // Whether all of a kind has been seen and is followed.
  void synced(std::string_view kind, bool synced);

  std::string text() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace berth::apps
