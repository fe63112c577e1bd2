// Transport: HTTP requests to one server, answered by callback; the seam where tests inject faults and virtual time.
//
// Everything that talks to the API server (client, reflectors, lease, events) does so through one of these. The daemon
// uses CurlTransport; tests use FakeTransport. A Transport has one thread of its own: every callback and every task of
// run_after() runs there, one at a time, so code that lives on it needs no locks. Callbacks must not block. All methods
// may be called from any thread, callbacks included.
//
// Invariants: 1. each send() and open_stream() ends in exactly one `done`, after stop() and cancel() too; 2. requests
// start in the order of send(); 3. a request whose timeout passes before it starts is never sent; 4. an error says by
// its code whether the server may have acted: kTimeout means unknown, kUnavailable without http_status means surely
// not.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace berth::io {

struct Header {
  std::string name{};
  std::string value{};
};

struct HttpRequest {
  std::string method = "GET";
  std::string target{};  // path and query, already percent-encoded: "/api/v1/pods?limit=500"
  std::vector<Header> headers{};
  std::string body{};
  // From send() to the last byte of the answer, time in the queue included. For a stream: from open_stream() to the
  // response's headers; a stream's body has no limit of its own.
  Duration timeout = Duration::seconds(30);
  // Asked on the transport's thread before a connection is looked for, and again when one is there and the request is
  // written next; "false" ends it unsent (kUnavailable). Fencing: a bind is not sent once the lease's deadline has
  // passed, however long it stood in the queue, shook hands, or lay in a process that was stopped.
  std::function<bool()> may_start{};
};

struct HttpResponse {
  int status = 0;
  std::vector<Header> headers{};  // all that the server sent, names in lower case
  std::string body{};             // empty for a stream whose body went to on_chunk

  // Value of the header `name` (lower case); empty when absent.
  std::string_view header(std::string_view name) const;
};

// A response of any status, 4xx and 5xx included; an Error only where there is no complete response.
using ResponseCallback = std::function<void(Result<HttpResponse>)>;

struct StreamCallbacks {
  // Part of a 2xx body, as it arrives; the view dies with the call.
  std::function<void(std::string_view chunk)> on_chunk{};
  // The end: the response when the server closed the stream in order, or an answer other than 2xx with its body.
  ResponseCallback done{};
};

using StreamId = uint64_t;

class Transport {
 public:
  virtual ~Transport() = default;

  virtual void send(HttpRequest request, ResponseCallback done) = 0;
  // Starts at once, outside the queue and the bound on requests in flight.
  virtual StreamId open_stream(HttpRequest request, StreamCallbacks callbacks) = 0;
  // Ends a stream early; its `done` gets kUnavailable. Unknown and finished ids are ignored. A callback that is already
  // running on the transport's thread may still finish after this returns.
  virtual void cancel(StreamId id) = 0;
  // Runs `task` on the transport's thread after `delay`; tasks still waiting at stop() are dropped.
  virtual void run_after(Duration delay, std::function<void()> task) = 0;
  // The clock by which timeouts and run_after() count.
  virtual const Clock& clock() const = 0;
  // Ends all requests with kUnavailable and waits for the thread, unless called on it. Idempotent; later sends fail.
  virtual void stop() = 0;

  // send() and wait. Never on the transport's own thread.
  virtual Result<HttpResponse> call(HttpRequest request);
};

// True if the request behind this error surely had no effect on the server: it was never sent, or was refused (4xx).
// False means: ask before trying again (timeouts, lost connections, 5xx).
bool surely_not_applied(const Error& error);

// Percent-encodes for one path segment or one query value.
std::string url_escape(std::string_view text);

}  // namespace berth::io
