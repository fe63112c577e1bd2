// read_answer(): what a server answered, as a struct.
//
// An answer of 200 may still be anything: a proxy's page, or an object that is out of shape. What the fields ask for is
// read by api/reader.h, so that a wrong type is an Error which names it and nothing throws; other members pass.
//
//   constexpr api::Field<Review> kReview[] = {{"status", …}};
//   BERTH_TRY(review, read_answer(body, "TokenReview", kReview));
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "api/document.h"
#include "api/reader.h"
#include "base/result.h"

namespace berth::kube {

// `what` names what was asked for.
inline Error not_an_answer(std::string_view what, std::string_view wrong) {
  return Error{
      ErrorCode::kUnavailable,
      fmt::format("the server's answer is not a {} ({}); check what stands between here and the server", what, wrong),
      0, 0};
}

template <typename T, size_t N>
Result<T> read_answer(std::string_view json, std::string_view what, const api::Field<T> (&fields)[N]) {
  T out{};
  api::ProblemSink sink;
  const Status read = api::read_json(json, sink, [&](const api::Reader& root) { api::read_object(root, fields, out); });
  if (!read) return fail(not_an_answer(what, read.error().message));
  if (!sink.problems.empty()) return fail(not_an_answer(what, api::to_string(sink.problems.front())));
  return out;
}

}  // namespace berth::kube
