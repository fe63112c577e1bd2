// TlsFiles: a server's certificate and key, read from files, and again when these change.
//
// A mounted Secret is replaced as a whole, by a symlink. A pair that cannot be read leaves the former one in use. One
// thread loads; expiry_s() may be asked from any.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"

namespace boost::asio::ssl {
class context;
}

namespace berth::io {

class TlsFiles {
 public:
  // Empty names: no TLS.
  TlsFiles(std::string cert, std::string key) : cert_(std::move(cert)), key_(std::move(key)) {}

  bool enabled() const { return !cert_.empty(); }
  // What connections use; null before load(). Those that are open keep theirs.
  const std::shared_ptr<boost::asio::ssl::context>& context() const { return context_; }
  // True if the files are not those that load() last looked at.
  bool changed() const { return stamp() != stamp_; }
  // When the certificate runs out, in seconds since 1970; 0 before load().
  int64_t expiry_s() const { return expiry_s_; }
  // Errors: a file that is missing or no PEM, a key that is not the certificate's. Told once, then after the next
  // change.
  Status load();

 private:
  // Inodes and modification times; stat() follows symlinks.
  using Stamp = std::array<std::pair<ino_t, int64_t>, 2>;
  Stamp stamp() const;

  std::string cert_, key_;
  Stamp stamp_{};
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::atomic<int64_t> expiry_s_{0};
};

}  // namespace berth::io
