// Which proxy the environment asks for, by the rules of client-go (Go's http.ProxyFromEnvironment), where a kubeconfig
// has no proxy-url.
//
// HTTPS_PROXY is for https:// servers and HTTP_PROXY for http:// ones, ALL_PROXY for either, as curl has it; each may
// be written in small letters. NO_PROXY lists what is reached directly: host names with all that is under them, IP
// addresses, networks (10.0.0.0/8), each perhaps with a port, or * for all. So is this machine itself.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "io/url.h"

namespace berth::kube {

// A process's environment variables.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

struct EnvironmentProxy {
  std::string variable{};  // that names it; empty if none does
  std::string url{};       // with a scheme: http:// where the variable has none
  bool serves = false;     // false: this server is to be reached directly
};

EnvironmentProxy environment_proxy(const io::Url& server, const Environment& getenv);

}  // namespace berth::kube
