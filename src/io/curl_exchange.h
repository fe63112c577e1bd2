// One request on one libcurl easy handle: how it is set up, how its answer is gathered, what its failure means.
//
// Private to CurlTransport; everything here runs on the transport's thread. An Exchange owns its request until `finish`
// and borrows an easy handle, which is reused for the next one, so every option that varies is set each time.
#pragma once

#include <curl/curl.h>

#include <array>
#include <memory>

#include "io/curl_transport.h"

namespace berth::io {

// The server's address as libcurl wants it.
struct Endpoint {
  std::string base_url{};     // scheme, host to verify, port, path prefix without a final '/'
  std::string host_header{};  // "Host: …" where base_url's host is not the real one
  std::string connect_to{};   // CURLOPT_CONNECT_TO entry for the same reason
};
// Errors: not an http or https URL.
Result<Endpoint> parse_endpoint(const CurlTransportOptions& options);

struct Exchange {
  HttpRequest request{};
  ResponseCallback done{};
  std::function<void(std::string_view)> on_chunk{};  // streams only
  StreamId stream = 0;                               // 0: not a stream
  Time deadline{};                                   // monotonic

  CURL* easy = nullptr;
  curl_slist* header_list = nullptr;
  std::shared_ptr<const Credential> credential{};  // holds the PEM blobs that libcurl points into
  HttpResponse response;
  size_t max_response_bytes = 0;
  bool too_large = false;
  std::array<char, CURL_ERROR_SIZE> error_text{};

  ~Exchange() { curl_slist_free_all(header_list); }
};

// Options that never change for this transport. `connect_to` must outlive the handle.
void configure_handle(CURL* easy, const CurlTransportOptions& options, curl_slist* connect_to);
// Prepares exchange.easy for exchange.request, with `left` until the deadline.
void configure_request(Exchange& exchange, const CurlTransportOptions& options, const Endpoint& endpoint,
                       Duration left);
// True once any byte of the request may have reached the server.
bool may_have_been_sent(const Exchange& exchange);
// What the failure `code` means for the caller.
Error exchange_error(CURLcode code, const Exchange& exchange, const CurlTransportOptions& options);

}  // namespace berth::io
