#include "io/fake_transport.h"

#include <memory>

namespace berth::io {

FakeReply FakeReply::json(int status, std::string body, Duration delay) {
  return {HttpResponse{status, {{"content-type", "application/json"}}, std::move(body)}, delay};
}

FakeReply FakeReply::error(ErrorCode code, std::string message, Duration delay) {
  return {fail(code, std::move(message)), delay};
}

FakeReply FakeReply::with_header(std::string name, std::string value) && {
  if (result) result->headers.push_back({std::move(name), std::move(value)});
  return std::move(*this);
}

void FakeTransport::send(HttpRequest request, ResponseCallback done) {
  requests_.push_back(request);
  if (stopped_) return done(fail(ErrorCode::kUnavailable, "the transport is stopped"));
  // The script runs from run_for(), never inside send(): the same as with a thread of its own.
  run_after(Duration{}, [this, request = std::move(request), done = std::move(done)] {
    if (request.may_start && !request.may_start())
      return done(fail(ErrorCode::kUnavailable, "not sent: its sender no longer wants it"));
    FakeReply reply = script_ ? script_(request) : FakeReply::error(ErrorCode::kUnavailable, "no script");
    if (reply.delay >= request.timeout) {
      run_after(request.timeout, [done] { done(fail(ErrorCode::kTimeout, "no answer in time")); });
    } else {
      run_after(reply.delay, [done, result = std::move(reply.result)] { done(result); });
    }
  });
}

StreamId FakeTransport::open_stream(HttpRequest request, StreamCallbacks callbacks) {
  requests_.push_back(request);
  const StreamId id = next_stream_++;
  streams_[id] = {id, request, std::move(callbacks)};
  std::optional<FakeReply> reply = stream_script_ ? stream_script_(request) : std::nullopt;
  if (reply) run_after(reply->delay, [this, id, result = std::move(reply->result)] { end_stream(id, result); });
  return id;
}

void FakeTransport::cancel(StreamId id) {
  run_after(Duration{}, [this, id] { end_stream(id, fail(ErrorCode::kUnavailable, "the stream was cancelled")); });
}

void FakeTransport::end_stream(StreamId id, Result<HttpResponse> result) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const StreamCallbacks callbacks = std::move(found->second.callbacks);
  streams_.erase(found);
  if (callbacks.done) callbacks.done(std::move(result));
}

bool FakeTransport::push(std::string_view target_part, std::string_view chunk) {
  for (auto it = streams_.rbegin(); it != streams_.rend(); ++it) {
    if (it->second.request.target.find(target_part) == std::string::npos) continue;
    const auto on_chunk = it->second.callbacks.on_chunk;  // the callback may end the stream
    on_chunk(chunk);
    return true;
  }
  return false;
}

bool FakeTransport::finish(std::string_view target_part, Result<HttpResponse> result) {
  for (auto it = streams_.rbegin(); it != streams_.rend(); ++it) {
    if (it->second.request.target.find(target_part) == std::string::npos) continue;
    end_stream(it->first, std::move(result));
    return true;
  }
  return false;
}

bool FakeTransport::step(Time limit) {
  if (tasks_.empty() || tasks_.begin()->first > limit) return false;
  const Time due = tasks_.begin()->first;
  auto task = std::move(tasks_.begin()->second);
  tasks_.erase(tasks_.begin());
  if (due > clock_.monotonic()) clock_.advance(due - clock_.monotonic());
  task();
  return true;
}

void FakeTransport::run_for(Duration by) {
  const Time end = clock_.monotonic() + by;
  while (step(end)) {}
  if (end > clock_.monotonic()) clock_.advance(end - clock_.monotonic());
}

void FakeTransport::run_after(Duration delay, std::function<void()> task) {
  if (!stopped_) tasks_.emplace(clock_.monotonic() + delay, std::move(task));
}

void FakeTransport::stop() {
  stopped_ = true;
  tasks_.clear();
  while (!streams_.empty())
    end_stream(streams_.begin()->first, fail(ErrorCode::kUnavailable, "the transport is stopped"));
}

Result<HttpResponse> FakeTransport::call(HttpRequest request) {
  auto answer = std::make_shared<std::optional<Result<HttpResponse>>>();
  send(std::move(request), [answer](Result<HttpResponse> result) { *answer = std::move(result); });
  while (!*answer && step(clock_.monotonic() + Duration::seconds(3600))) {}
  if (!*answer) return fail(ErrorCode::kTimeout, "the script never answered");
  return **answer;
}

}  // namespace berth::io
