#include "apps/webhook/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <sstream>

namespace berth::apps {
namespace {

const prometheus::Histogram::BucketBoundaries kLatency{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1};

}  // namespace

struct WebhookMetrics::Families {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests = prometheus::BuildCounter()
                                                          .Name("berth_webhook_requests_total")
                                                          .Help(
                                                              "Requests of the API server, by path and result: ok, "
                                                              "changed, warned, denied, failed, bad_request, error.")
                                                          .Register(registry);
  prometheus::Family<prometheus::Histogram>& seconds = prometheus::BuildHistogram()
                                                           .Name("berth_webhook_request_duration_seconds")
                                                           .Help("From a request's last byte until its answer.")
                                                           .Register(registry);
  prometheus::Gauge& expiry = prometheus::BuildGauge()
                                  .Name("berth_webhook_certificate_expiry_timestamp_seconds")
                                  .Help("When the certificate in use runs out, in seconds since 1970.")
                                  .Register(registry)
                                  .Add({});
  prometheus::Family<prometheus::Gauge>& synced =
      prometheus::BuildGauge()
          .Name("berth_webhook_cache_synced")
          .Help("Whether all objects of a kind have been seen and are followed, with --watch.")
          .Register(registry);
};

WebhookMetrics::WebhookMetrics() : families_(std::make_unique<Families>()) {}
WebhookMetrics::~WebhookMetrics() = default;

void WebhookMetrics::answered(std::string_view path, std::string_view result, Duration took) {
  families_->requests.Add({{"path", std::string(path)}, {"result", std::string(result)}}).Increment();
  families_->seconds.Add({{"path", std::string(path)}}, kLatency).Observe(took.as_seconds());
}

void WebhookMetrics::certificate_expiry(int64_t seconds) { families_->expiry.Set(static_cast<double>(seconds)); }

void WebhookMetrics::synced(std::string_view kind, bool synced) {
  families_->synced.Add({{"kind", std::string(kind)}}).Set(synced ? 1 : 0);
}

std::string WebhookMetrics::text() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families_->registry.Collect());
  return out.str();
}

}  // namespace berth::apps
