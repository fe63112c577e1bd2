#include "base/result.h"

namespace berth {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidInput: return "InvalidInput";
    case ErrorCode::kNotFound: return "NotFound";
    case ErrorCode::kConflict: return "Conflict";
    case ErrorCode::kGone: return "Gone";
    case ErrorCode::kUnauthorized: return "Unauthorized";
    case ErrorCode::kThrottled: return "Throttled";
    case ErrorCode::kUnavailable: return "Unavailable";
    case ErrorCode::kTimeout: return "Timeout";
    case ErrorCode::kUnsupported: return "Unsupported";
    case ErrorCode::kInternal: return "Internal";
  }
  return "Unknown";
}

Error Error::with_context(std::string_view context) const {
  Error outer = *this;
  outer.message = std::string(context) + ": " + message;
  return outer;
}

}  // namespace berth
