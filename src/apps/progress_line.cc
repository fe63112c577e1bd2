#include "apps/progress_line.h"

#include <ostream>

namespace berth::apps {
namespace {

constexpr Duration kFirst = Duration::millis(500);
constexpr Duration kOnTerminal = Duration::millis(200);
constexpr Duration kElsewhere = Duration::seconds(10);
constexpr const char* kWipe = "\r\033[K";

}  // namespace

ProgressLine::ProgressLine(std::ostream& out, bool terminal, Time start)
    : out_(out), terminal_(terminal), next_(start + (terminal ? kFirst : kElsewhere)) {}

ProgressLine::~ProgressLine() {
  if (terminal_ && shown_) out_ << kWipe << std::flush;
}

void ProgressLine::update(Time now, const std::function<std::string()>& text) {
  if (now < next_) return;
  next_ = now + (terminal_ ? kOnTerminal : kElsewhere);
  shown_ = true;
  if (terminal_) out_ << kWipe << text() << std::flush;
  else out_ << text() << "\n" << std::flush;
}

}  // namespace berth::apps
