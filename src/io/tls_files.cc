#include "io/tls_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <boost/asio/ssl/context.hpp>
#include <ctime>

namespace berth::io {

namespace ssl = boost::asio::ssl;

Status TlsFiles::load() {
  stamp_ = stamp();
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  boost::system::error_code error;
  const auto give_up = [&](const std::string& file) {
    return fail(
        ErrorCode::kInvalidInput,
        fmt::format("TLS file {}: {}; a PEM certificate and its matching key are needed", file, error.message()));
  };
  context->set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1, error);
  if (context->use_certificate_chain_file(cert_, error)) return give_up(cert_);
  if (context->use_private_key_file(key_, ssl::context::pem, error)) return give_up(key_);
  std::tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(SSL_CTX_get0_certificate(context->native_handle())), &end) == 1)
    expiry_s_ = timegm(&end);
  context_ = std::move(context);
  return {};
}

TlsFiles::Stamp TlsFiles::stamp() const {
  Stamp out{};
  for (size_t i = 0; i < 2; ++i) {
    struct stat info {};
    if (stat((i == 0 ? cert_ : key_).c_str(), &info) == 0)
      out[i] = {info.st_ino, info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec};
  }
  return out;
}

}  // namespace berth::io
