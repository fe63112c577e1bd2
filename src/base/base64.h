// Base64 as kubeconfig files and HTTP basic authentication use it (RFC 4648 §4).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

std::string base64_encode(std::string_view bytes);
// Line breaks and blanks are skipped. Errors: any other character, or a length that cannot be.
Result<std::string> base64_decode(std::string_view text);

}  // namespace berth
