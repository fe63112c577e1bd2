#include "kube/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "api/patch.h"
#include "api/protobuf.h"
#include "api/protobuf_tables.h"
#include "base/version.h"

namespace berth::kube {
namespace {

using nlohmann::json;

constexpr int64_t kRetryAfterMaxS = 60;

std::string_view content_type(PatchType type) {
  switch (type) {
    case PatchType::kMerge: return "application/merge-patch+json";
    case PatchType::kStrategic: return "application/strategic-merge-patch+json";
    case PatchType::kJson: return "application/json-patch+json";
    case PatchType::kApply: return "application/apply-patch+yaml";
  }
  return "application/merge-patch+json";
}

// Codes and reasons as in k8s.io/apimachinery/pkg/apis/meta/v1/types.go (StatusReason).
ErrorCode code_of(int status, std::string_view reason) {
  if (reason == "Timeout" || status == 504) return ErrorCode::kTimeout;  // "may still be processing the request"
  if (reason == "Expired" || reason == "Gone" || status == 410) return ErrorCode::kGone;
  if (status == 404) return ErrorCode::kNotFound;
  if (status == 409) return ErrorCode::kConflict;
  if (status == 401 || status == 403) return ErrorCode::kUnauthorized;
  if (status == 429) return ErrorCode::kThrottled;
  if (status >= 500) return ErrorCode::kUnavailable;
  if (status == 405 || status == 406 || status == 415) return ErrorCode::kUnsupported;
  if (status >= 400) return ErrorCode::kInvalidInput;
  return ErrorCode::kUnavailable;
}

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

// Text of an answer that is no Status, as a proxy may give: one short line of printable characters.
std::string one_line(std::string_view body) {
  std::string out;
  for (const char c : body.substr(0, 200)) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return out;
}

// The JSON of a Status in protobuf, as far as it can be read.
std::string status_json(std::string_view body) {
  std::string text;
  if (const auto envelope = api::protobuf_envelope(body))
    (void)api::append_protobuf_as_json(envelope->object, api::kStatusProtobuf, text);
  return text;
}

}  // namespace

std::string Resource::collection(std::string_view name_space) const {
  std::string path = group.empty() ? fmt::format("/api/{}", version) : fmt::format("/apis/{}/{}", group, version);
  if (!name_space.empty()) path += "/namespaces/" + io::url_escape(name_space);
  return path + "/" + std::string(plural);
}

std::string Resource::object(std::string_view name_space, std::string_view name, std::string_view subresource) const {
  std::string path = collection(name_space) + "/" + io::url_escape(name);
  if (!subresource.empty()) path += "/" + std::string(subresource);
  return path;
}

std::string Client::default_user_agent() { return "berth/" + std::string(version()); }

Duration retry_after(const Error& error) {
  return Duration::seconds(std::clamp<int64_t>(error.retry_after_s, 0, kRetryAfterMaxS));
}

Client::Client(io::Transport& transport, std::string user_agent)
    : transport_(transport), user_agent_(std::move(user_agent)) {}

io::HttpRequest Client::request(std::string method, std::string target, std::string_view accept) const {
  io::HttpRequest out;
  out.method = std::move(method);
  out.target = std::move(target);
  out.headers = {{"Accept", std::string(accept)}, {"User-Agent", user_agent_}};
  return out;
}

void Client::start(io::HttpRequest request, Done done, CallOptions options) {
  request.timeout = options.timeout;
  request.may_start = std::move(options.may_start);
  std::string what = request.method + " " + request.target;
  transport_.send(std::move(request),
                  [what = std::move(what), done = std::move(done)](Result<io::HttpResponse> answer) {
                    if (!done) return;
                    if (!answer) return done(fail(answer.error()));
                    done(body_or_error(std::move(*answer), what));
                  });
}

void Client::get(const std::string& path, Done done, CallOptions options) {
  start(request("GET", path), std::move(done), std::move(options));
}

void Client::create(const std::string& path, std::string body, Done done, CallOptions options) {
  io::HttpRequest out = request("POST", path);
  out.headers.push_back({"Content-Type", "application/json"});
  out.body = std::move(body);
  start(std::move(out), std::move(done), std::move(options));
}

void Client::update(const std::string& path, std::string body, Done done, CallOptions options) {
  io::HttpRequest out = request("PUT", path);
  out.headers.push_back({"Content-Type", "application/json"});
  out.body = std::move(body);
  start(std::move(out), std::move(done), std::move(options));
}

void Client::patch(const std::string& path, PatchType type, std::string body, Done done, CallOptions options) {
  io::HttpRequest out = request("PATCH", path);
  out.headers.push_back({"Content-Type", std::string(content_type(type))});
  out.body = std::move(body);
  start(std::move(out), std::move(done), std::move(options));
}

void Client::remove(const std::string& path, std::string body, Done done, CallOptions options) {
  io::HttpRequest out = request("DELETE", path);
  if (!body.empty()) out.headers.push_back({"Content-Type", "application/json"});
  out.body = std::move(body);
  start(std::move(out), std::move(done), std::move(options));
}

void Client::bind(const PodBinding& binding, Done done, CallOptions options) {
  create(kPods.object(binding.name_space, binding.pod, "binding"),
         api::binding_json(binding.name_space, binding.pod, binding.uid, binding.node, binding.annotations),
         std::move(done), std::move(options));
}

void Client::patch_pod_condition(std::string_view name_space, std::string_view pod, std::string_view uid,
                                 const PodConditionPatch& condition, Done done, CallOptions options) {
  const std::string body = api::pod_condition_patch_json(uid, condition.condition, condition.last_transition,
                                                         condition.observed_generation, condition.nominated_node);
  // The server says "422, metadata.uid is immutable" where the UID is another's.
  Done translated = [done = std::move(done)](Result<std::string> answer) {
    if (!answer && answer.error().http_status == 422 &&
        answer.error().message.find("metadata.uid") != std::string::npos)
      answer.error().code = ErrorCode::kConflict;
    if (done) done(std::move(answer));
  };
  patch(kPods.object(name_space, pod, "status"), PatchType::kStrategic, body, std::move(translated),
        std::move(options));
}

Result<std::string> Client::get_now(const std::string& path, CallOptions options) {
  io::HttpRequest out = request("GET", path);
  out.timeout = options.timeout;
  out.may_start = std::move(options.may_start);
  BERTH_TRY(answer, transport_.call(std::move(out)));
  return body_or_error(std::move(answer), "GET " + path);
}

Result<std::string> body_or_error(io::HttpResponse response, std::string_view what) {
  if (response.status / 100 == 2) return std::move(response.body);
  Error error = status_error(response.status, response.body, what);
  const std::string_view after = response.header("retry-after");
  std::from_chars(after.data(), after.data() + after.size(), error.retry_after_s);  // a date, which is rare, leaves 0
  return fail(std::move(error));
}

std::string_view server_words(std::string_view message) {
  for (int part = 0; part < 2; ++part) {
    const size_t colon = message.find(": ");
    if (colon == std::string_view::npos) break;
    message.remove_prefix(colon + 2);
  }
  return message;
}

Error status_error(int http_status, std::string_view body, std::string_view what) {
  if (api::is_protobuf(body)) return status_error(http_status, status_json(body), what);
  const json parsed = json::parse(body, nullptr, false);
  std::string reason, message;
  int64_t retry_after_s = 0;
  if (parsed.is_object()) {
    reason = text_of(parsed, "reason");
    message = text_of(parsed, "message");
    const auto code = parsed.find("code");
    if (http_status == 200 && code != parsed.end() && code->is_number_integer()) http_status = code->get<int>();
    const auto details = parsed.find("details");
    if (details != parsed.end() && details->is_object()) {
      const auto after = details->find("retryAfterSeconds");
      if (after != details->end() && after->is_number_integer()) retry_after_s = after->get<int64_t>();
    }
  }
  if (message.empty()) message = one_line(body);
  const ErrorCode code = code_of(http_status, reason);
  if (reason.empty()) reason = fmt::format("HTTP {}", http_status);
  return Error{code, fmt::format("{}: {}: {}", what, reason, message), http_status, retry_after_s};
}

}  // namespace berth::kube
