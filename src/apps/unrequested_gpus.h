// How people name what becomes of pods that reach for GPUs and request none, in berth.yaml and for `berth webhook`:
// ignore, warn or deny.
#pragma once

#include <string_view>

#include "api/reader.h"
#include "webhook/rules.h"

namespace berth::apps {

std::string_view to_string(webhook::UnrequestedGpus policy);
// kWarn for any other word.
webhook::UnrequestedGpus unrequested_gpus_named(std::string_view word);
void read_unrequested_gpus(const api::Reader& reader, webhook::UnrequestedGpus& out);

}  // namespace berth::apps
