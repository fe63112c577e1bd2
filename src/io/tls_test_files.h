// A certificate authority for tests, and server certificates signed by it, made afresh in memory.
#pragma once

#include <string>

namespace berth::io {

struct TestPair {
  std::string cert_pem;
  std::string key_pem;
};

// Self-signed, may sign others.
TestPair make_test_ca(const std::string& name);
// For `dns_name` and 127.0.0.1, signed by `ca`; for servers and clients.
TestPair make_test_cert(const TestPair& ca, const std::string& dns_name);

}  // namespace berth::io
