// Result<T>: a value or an Error. Every function that can fail for a reason outside its own logic returns one.
//
// An Error has a closed code (what a caller may branch on), a message that says what happened, why and what to do next,
// and a chain of context added on the way up, outermost first. "Does not fit" is never an Error: see engine/verdict.h.
// Exceptions of libraries stop at their wrappers and become Errors there.
//
//   Result<Config> load(const std::string& path) {
//     BERTH_TRY(text, read_file(path));                   // returns the error, if any, from this function
//     return parse(text).map_error(with_context(path));
//   }
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace berth {

enum class ErrorCode {
  kInvalidInput,  // malformed or contradictory input; fix the input
  kNotFound,      // a file, object or endpoint that does not exist
  kConflict,      // 409: the object is not what the caller thought; ask before trying again
  kGone,          // 410: a resourceVersion that the server no longer has; list again
  kUnauthorized,  // 401 or 403
  kThrottled,     // 429, or a server that asks to slow down
  kUnavailable,   // connection refused or lost, 5xx; may work later
  kTimeout,       // no answer in time: the outcome is unknown
  kUnsupported,   // understood, but not something that Berth does
  kInternal,      // our own fault
};

// Name of a code as it stands in logs, for example "InvalidInput".
std::string_view to_string(ErrorCode code);

struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  int http_status = 0;        // status of the HTTP response behind this error; 0 without one
  int64_t retry_after_s = 0;  // from Retry-After; 0 without one

  // The same error, its message prefixed with "context: ".
  Error with_context(std::string_view context) const;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message), 0, 0});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

// For map_error(): prefixes the message with "context: ".
inline auto with_context(std::string context) {
  return [context = std::move(context)](const Error& error) { return error.with_context(context); };
}

}  // namespace berth

// BERTH_TRY(name, expression): declares `name` as the value of a Result, or returns its Error.
// BERTH_TRY_VOID(expression): the same for a Status.
#define BERTH_TRY(name, ...)                                             \
  auto name##_or_error_ = (__VA_ARGS__);                                 \
  if (!name##_or_error_) return ::berth::fail(name##_or_error_.error()); \
  auto& name = *name##_or_error_
#define BERTH_TRY_VOID(...) \
  if (auto status_ = (__VA_ARGS__); !status_) return ::berth::fail(status_.error())
