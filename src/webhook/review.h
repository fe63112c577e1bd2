// Reviews: what the API server asks a webhook, and the answers that it understands.
//
// A request body is text from the network: it is bounded (kBodyDepthMax here, its size where it is received), and what
// is no review is an Error, which becomes a 400. Everything else is answered as a review, so that the API server can
// tell the user. Pure functions. Source: admission.k8s.io/v1 and apiextensions.k8s.io/v1,
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::webhook {

using Json = nlohmann::json;

inline constexpr int kBodyDepthMax = 64;

// The JSON in a request body. Errors: not JSON, or nested deeper than kBodyDepthMax.
Result<Json> parse_body(std::string_view body);

// request of an AdmissionReview.
struct AdmissionRequest {
  std::string uid;
  std::string group, version, kind;  // of the object
  std::string operation;             // CREATE, UPDATE, DELETE, CONNECT
  std::string subresource;
  std::string namespace_name, name;  // the name is empty where the server is to generate one
  std::string user;                  // who asks, userInfo.username
  Json object, old_object;           // null where the operation has none
};

struct AdmissionAnswer {
  bool allowed = true;
  int code = 0;                       // HTTP status of a denial
  std::string reason, message;        // of a denial; "Invalid", "Forbidden"
  Json object;                        // what the object becomes; null: what it is
  std::vector<std::string> warnings;  // shown to the user, whatever the answer
};

// What is certainly wrong (422) and what a policy forbids (403).
AdmissionAnswer deny_invalid(std::string message);
AdmissionAnswer deny_forbidden(std::string message);

Result<AdmissionRequest> read_admission(Json review);
// An AdmissionReview with the answer; the change of the object as a JSON Patch (RFC 6902).
Json write_admission(const AdmissionRequest& request, const AdmissionAnswer& answer);

// Answers a ConversionReview: all of its objects in the version that it asks for, or the first reason why not.
Result<Json> answer_conversion(Json review);

}  // namespace berth::webhook
