// LiveGauges: series of gauges that are said anew each time; those that are not said again have gone.
//
//   shown.begin(); shown.set(family, {{"queue", name}}, 3); …; shown.end();
#pragma once

#include <prometheus/gauge.h>

#include <map>

namespace berth::apps {

class LiveGauges {
 public:
  void begin() { now_.clear(); }
  void set(prometheus::Family<prometheus::Gauge>& family, const prometheus::Labels& labels, double value) {
    prometheus::Gauge& series = family.Add(labels);
    series.Set(value);
    now_[&series] = &family;
  }
  void end() {
    for (const auto& [series, family] : shown_)
      if (!now_.contains(series)) family->Remove(series);
    shown_ = now_;
  }

 private:
  std::map<prometheus::Gauge*, prometheus::Family<prometheus::Gauge>*> now_, shown_;
};

}  // namespace berth::apps
