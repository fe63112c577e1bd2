// The operating system's clocks behind berth::Clock.
#pragma once

#include "base/time.h"

namespace berth::io {

// monotonic() is CLOCK_BOOTTIME: it goes on while the machine is suspended, so a lease that ran out during a suspend is
// seen to have run out.
class SystemClock final : public Clock {
 public:
  Time wall() const override;
  Time monotonic() const override;
  static const SystemClock& instance();
};

}  // namespace berth::io
