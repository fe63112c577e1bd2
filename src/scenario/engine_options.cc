#include "scenario/engine_options.h"

#include <fmt/format.h>

#include <string>

namespace berth::scenario {
namespace {

using engine::ReservationOptions;
using engine::SetPackingOptions;

void read_work(const api::Reader& reader, int64_t& out) {
  int32_t work = 0;
  if (!reader.read(work)) return;
  if (work < 1)
    return reader.problem(fmt::format("{} is less than 1; `enabled: false` turns packing as a set off", work));
  out = work;
}

constexpr api::Field<SetPackingOptions> kSetPacking[] = {
    {"enabled", [](const api::Reader& r, SetPackingOptions& o) { r.read(o.enabled); }},
    {"headBound", [](const api::Reader& r, SetPackingOptions& o) { read_duration(r, o.head_bound); }},
    {"maxWork", [](const api::Reader& r, SetPackingOptions& o) { read_work(r, o.work_max); }},
};

constexpr api::Field<ReservationOptions> kReservations[] = {
    {"enabled", [](const api::Reader& r, ReservationOptions& o) { r.read(o.enabled); }},
    {"after", [](const api::Reader& r, ReservationOptions& o) { read_duration(r, o.after); }},
    {"perQueue",
     [](const api::Reader& r, ReservationOptions& o) {
       int32_t count = 0;
       if (!r.read(count)) return;
       if (count < 1) r.problem(fmt::format("{} is less than 1; `enabled: false` turns reservations off", count));
       else o.per_queue = count;
     }},
};

}  // namespace

void read_duration(const api::Reader& reader, Duration& out) {
  if (reader.type() == api::JsonType::kInteger || reader.type() == api::JsonType::kFloat)
    return reader.problem("a duration is a text with a unit, such as 90m, 1h30m or 45s");
  std::string text;
  if (!reader.read(text)) return;
  const Result<Duration> value = parse_duration(text);
  if (!value) return reader.problem(value.error().message);
  if (value->nanos <= 0) return reader.problem("must be longer than 0");
  out = *value;
}

void read_set_packing(const api::Reader& reader, SetPackingOptions& out) { api::read_object(reader, kSetPacking, out); }

void read_reservations(const api::Reader& reader, ReservationOptions& out) {
  api::read_object(reader, kReservations, out);
}

}  // namespace berth::scenario
