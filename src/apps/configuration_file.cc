#include "apps/configuration_file.h"

#include <iostream>

#include "apps/files.h"
#include "base/printable.h"

namespace berth::apps {

std::optional<Configuration> load_configuration(const std::string& file) {
  if (file.empty()) return std::make_optional<Configuration>();
  const Result<std::string> text = read_file(file);
  if (!text) {
    std::cerr << "error: --config " << printable(file) << ": " << text.error().message << "\n";
    return std::nullopt;
  }
  api::Problems problems;
  Configuration configuration = read_configuration(*text, printable(file), problems);
  for (const auto& [field, path] : {std::pair("http.tlsCertFile", configuration.http.tls_cert_file),
                                    std::pair("http.tlsPrivateKeyFile", configuration.http.tls_private_key_file)}) {
    if (path.empty()) continue;
    if (const Result<std::string> there = read_file(path); !there)
      problems.push_back({printable(file), 0, field, printable(path) + ": " + there.error().message});
  }
  for (const api::Problem& problem : problems) std::cerr << "error: " << api::to_string(problem) << "\n";
  if (!problems.empty()) return std::nullopt;
  return configuration;
}

}  // namespace berth::apps
