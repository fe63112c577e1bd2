// ProgressLine: says how far a long command is, for whoever waits for it.
//
// On a terminal one line is rewritten, from half a second on, and wiped at the end; elsewhere, such as in a log, a line
// is added every ten seconds. Short commands say nothing. The caller hands in the time. One thread.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

#include "base/time.h"

namespace berth::apps {

class ProgressLine {
 public:
  // `out` must outlive it.
  ProgressLine(std::ostream& out, bool terminal, Time start);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Writes what `text` returns where it is time to; otherwise costs a comparison.
  void update(Time now, const std::function<std::string()>& text);

 private:
  std::ostream& out_;
  bool terminal_;
  bool shown_ = false;
  Time next_;
};

}  // namespace berth::apps
