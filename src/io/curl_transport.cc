#include "io/curl_transport.h"

#include <curl/curl.h>

#include "io/curl_loop.h"
#include "io/url.h"

namespace berth::io {

CurlTransport::CurlTransport(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
CurlTransport::~CurlTransport() { stop(); }

Result<std::unique_ptr<CurlTransport>> CurlTransport::create(CurlTransportOptions options) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);  // thread-safe by the static's guard
  if (initialised != CURLE_OK)
    return fail(ErrorCode::kInternal, "libcurl could not be initialised; reinstall libcurl4");
  auto endpoint = parse_endpoint(options);
  if (!endpoint) return fail(endpoint.error());
  if (!options.proxy_url.empty())
    BERTH_TRY_VOID(parse_proxy_url(options.proxy_url).map([](const Url&) {}).map_error(with_context("proxy-url")));
  auto loop = std::make_unique<Loop>(std::move(options), std::move(*endpoint));
  BERTH_TRY_VOID(loop->start());
  return std::unique_ptr<CurlTransport>(new CurlTransport(std::move(loop)));
}

void CurlTransport::send(HttpRequest request, ResponseCallback done) {
  loop_->send(std::move(request), std::move(done));
}
StreamId CurlTransport::open_stream(HttpRequest request, StreamCallbacks callbacks) {
  return loop_->open_stream(std::move(request), std::move(callbacks));
}
void CurlTransport::cancel(StreamId id) { loop_->cancel(id); }
void CurlTransport::run_after(Duration delay, std::function<void()> task) { loop_->run_after(delay, std::move(task)); }
const Clock& CurlTransport::clock() const { return loop_->clock(); }
void CurlTransport::stop() { loop_->stop(); }
TransportStats CurlTransport::stats() const { return loop_->stats(); }

}  // namespace berth::io
