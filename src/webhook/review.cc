#include "webhook/review.h"

#include <fmt/format.h>

#include <utility>

#include "base/base64.h"
#include "base/printable.h"
#include "webhook/convert.h"
#include "webhook/object.h"

namespace berth::webhook {
namespace {

constexpr size_t kWarningBytesMax = 250;  // and "..."; the API server cuts what is longer than 256
constexpr size_t kWarningsMax = 16;
constexpr const char* kAdmissionVersion = "admission.k8s.io/v1";
constexpr const char* kConversionVersion = "apiextensions.k8s.io/v1";

bool too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      else if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kBodyDepthMax) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

// Takes a member out of an object, since it may be large; null without it.
Json take(Json& object, const char* key) {
  const auto member = object.find(key);
  return member != object.end() ? std::move(*member) : Json();
}

// The request of a review of this kind.
Result<Json> request_of(Json& review, const char* version, const char* kind) {
  if (!review.is_object() || text_of(review, "apiVersion") != version || text_of(review, "kind") != kind)
    return fail(ErrorCode::kInvalidInput, fmt::format("this is no {} of {}", kind, version));
  Json request = take(review, "request");
  if (!request.is_object() || text_of(request, "uid").empty())
    return fail(ErrorCode::kInvalidInput, fmt::format("a {} needs a request with a uid", kind));
  return request;
}

Json review_with(const char* version, const char* kind, Json response) {
  return Json{{"apiVersion", version}, {"kind", kind}, {"response", std::move(response)}};
}

AdmissionAnswer denial(int code, const char* reason, std::string message) {
  AdmissionAnswer answer;
  answer.allowed = false;
  answer.code = code;
  answer.reason = reason;
  answer.message = std::move(message);
  return answer;
}

}  // namespace

Result<Json> parse_body(std::string_view body) {
  if (too_deep(body))
    return fail(ErrorCode::kInvalidInput, fmt::format("the body is nested deeper than {} levels", kBodyDepthMax));
  Json parsed = Json::parse(body, nullptr, false);
  if (parsed.is_discarded()) return fail(ErrorCode::kInvalidInput, "the body is not JSON");
  return parsed;
}

AdmissionAnswer deny_invalid(std::string message) { return denial(422, "Invalid", std::move(message)); }
AdmissionAnswer deny_forbidden(std::string message) { return denial(403, "Forbidden", std::move(message)); }

Result<AdmissionRequest> read_admission(Json review) {
  BERTH_TRY(from, request_of(review, kAdmissionVersion, "AdmissionReview"));
  AdmissionRequest out;
  out.uid = text_of(from, "uid");
  if (const Json kind = take(from, "kind"); kind.is_object()) {
    out.group = text_of(kind, "group");
    out.version = text_of(kind, "version");
    out.kind = text_of(kind, "kind");
  }
  out.operation = text_of(from, "operation");
  out.subresource = text_of(from, "subResource");
  out.namespace_name = text_of(from, "namespace");
  out.name = text_of(from, "name");
  if (const Json info = take(from, "userInfo"); info.is_object()) out.user = text_of(info, "username");
  out.object = take(from, "object");
  out.old_object = take(from, "oldObject");
  return out;
}

Json write_admission(const AdmissionRequest& request, const AdmissionAnswer& answer) {
  Json response{{"uid", request.uid}, {"allowed", answer.allowed}};
  if (!answer.allowed)
    response["status"] = Json{{"code", answer.code}, {"reason", answer.reason}, {"message", answer.message}};
  for (const std::string& warning : answer.warnings)
    if (response["warnings"].size() < kWarningsMax)
      response["warnings"].push_back(printable(warning, kWarningBytesMax));
  if (answer.allowed && !answer.object.is_null()) {
    const Json patch = Json::diff(request.object, answer.object);
    if (!patch.empty()) {
      response["patchType"] = "JSONPatch";
      response["patch"] = base64_encode(patch.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
  }
  return review_with(kAdmissionVersion, "AdmissionReview", std::move(response));
}

Result<Json> answer_conversion(Json review) {
  BERTH_TRY(request, request_of(review, kConversionVersion, "ConversionReview"));
  const std::string version = text_of(request, "desiredAPIVersion");
  Json response{{"uid", text_of(request, "uid")}, {"convertedObjects", Json::array()}};
  Json objects = take(request, "objects");
  UnpackBudget budget;
  if (!objects.is_array()) return fail(ErrorCode::kInvalidInput, "a ConversionReview needs request.objects, a list");
  for (Json& object : objects) {
    const std::string kind = object.is_object() ? text_of(object, "kind") : "";
    Result<Json> converted = convert_kueue(std::move(object), version, budget);
    if (!converted) {
      response.erase("convertedObjects");
      response["result"] = Json{{"status", "Failed"},
                                {"message", printable((kind.empty() ? "" : kind + ": ") + converted.error().message)}};
      return review_with(kConversionVersion, "ConversionReview", std::move(response));
    }
    response["convertedObjects"].push_back(std::move(*converted));
  }
  response["result"] = Json{{"status", "Success"}};
  return review_with(kConversionVersion, "ConversionReview", std::move(response));
}

}  // namespace berth::webhook
